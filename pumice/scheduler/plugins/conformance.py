"""conformance: pods that Kubernetes needs are never evicted for others, or moved elsewhere.

Pods with priority class `system-cluster-critical` or `system-node-critical`, and pods of namespace `kube-system`.
"""

from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import LastingPlugin, PluginSpec
from pumice.scheduler.view import SessionView


class Conformance(LastingPlugin):
    """Spares critical pods."""

    def open(self, session: SessionView, register: Registrar) -> None:  # noqa: ARG002
        """Register the checks."""
        register.preemptable(_not_critical, by=any_preemptor)
        register.reclaimable(_not_critical, by=any_preemptor)
        register.evictable(_is_free)


def _not_critical(_: Preemptor, candidates: Candidates) -> Bools:
    found: Bools = ~candidates.critical
    return found


def _is_free(task: TaskInfo) -> bool:
    return not task.is_critical


SPEC = PluginSpec(
    name="conformance",
    summary="Never evicts pods that are critical for Kubernetes, or in kube-system.",
    build=lambda _: Conformance(),
)
