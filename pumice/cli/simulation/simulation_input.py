"""Input of a simulation: the objects of files, after admission of Jobs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pumice.api import kinds
from pumice.api.budgets import PodDisruptionBudget
from pumice.api.fields import plain
from pumice.api.nodes import Namespace, Node, PriorityClass
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.api.resourcequotas import ResourceQuota
from pumice.api.runtime_classes import RuntimeClass
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.cli.files.checking import ManifestChecker, registry
from pumice.cli.files.decoding import decode
from pumice.cli.files.manifests import Manifest, Raw
from pumice.cli.output import note
from pumice.cli.simulation.jobs import SimulatedJobs
from pumice.cli.simulation.runtime_classes import SimulatedRuntimeClasses
from pumice.scheduler.simulate import ClusterObjects
from pumice.webhook.rules.terms import Terms

__all__ = ["SimulationInput"]


@dataclass(slots=True)
class SimulationInput:
    """Objects of the files.

    Attributes:
        objects: Objects that the scheduler reads.
        jobs: Admitted Jobs.
        groups: PodGroups of the files.
        refused: Jobs and pods that admission refuses.
        runtime_classes: Adds the fields of RuntimeClasses to new pods.
    """

    objects: ClusterObjects
    jobs: list[Raw] = field(default_factory=list)
    groups: list[Raw] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    runtime_classes: SimulatedRuntimeClasses = field(default_factory=SimulatedRuntimeClasses)

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> "SimulationInput":
        """Sort manifests by kind; of two with the same identity the later counts.

        Raises:
            UserError: A manifest cannot be decoded.
        """
        newest = {manifest.identity: manifest for manifest in manifests}
        given = cls(ClusterObjects())
        objects = given.objects
        jobs: list[Manifest] = []
        pods: list[Manifest] = []
        classes: list[RuntimeClass] = []
        skipped: dict[str, int] = {}
        for manifest in newest.values():
            match kinds.of_object(manifest.object):
                case kinds.NODE:
                    objects.nodes.append(decode(manifest, Node))
                case kinds.NAMESPACE:
                    objects.namespaces.append(decode(manifest, Namespace))
                case kinds.POD:
                    pods.append(manifest)
                case kinds.POD_GROUP:
                    objects.pod_groups.append(decode(manifest, PodGroup))
                    given.groups.append(manifest.object)
                case kinds.QUEUE:
                    objects.queues.append(decode(manifest, Queue))
                case kinds.PRIORITY_CLASS:
                    objects.priority_classes.append(decode(manifest, PriorityClass))
                case kinds.RUNTIME_CLASS:
                    classes.append(decode(manifest, RuntimeClass))
                case kinds.PERSISTENT_VOLUME_CLAIM:
                    objects.claims.append(decode(manifest, PersistentVolumeClaim))
                case kinds.PERSISTENT_VOLUME:
                    objects.volumes.append(decode(manifest, PersistentVolume))
                case kinds.STORAGE_CLASS:
                    objects.storage_classes.append(decode(manifest, StorageClass))
                case kinds.CSI_NODE:
                    objects.csi_nodes.append(decode(manifest, CsiNode))
                case kinds.RESOURCE_QUOTA:
                    objects.quotas.append(decode(manifest, ResourceQuota))
                case kinds.POD_DISRUPTION_BUDGET:
                    objects.budgets.append(decode(manifest, PodDisruptionBudget))
                case kinds.JOB:
                    jobs.append(manifest)
                case _:
                    kind = str(manifest.object["kind"])
                    skipped[kind] = skipped.get(kind, 0) + 1
        for kind, count in skipped.items():
            note(plain(f"skipped {count} {kind}: the scheduler does not look at this kind"))
        given.runtime_classes = SimulatedRuntimeClasses(classes)
        for manifest in pods:
            given._admit_pod(manifest)
        if jobs:
            given._admit(jobs, list(newest.values()))
        return given

    def _admit_pod(self, manifest: Manifest) -> None:
        """Add a pod, with the fields of its RuntimeClass."""
        pod = decode(manifest, Pod)
        spec = dict(manifest.object.get("spec") or {})
        if not pod.metadata.uid and ("runtimeClassName" in spec or "overhead" in spec):
            if why := self.runtime_classes.why_refused(spec):
                self._refuse(manifest, [why])
                return
            pod = decode(replace(manifest, object={**manifest.object, "spec": spec}), Pod)
        self.objects.pods.append(pod)

    def _admit(self, jobs: list[Manifest], state: list[Manifest]) -> None:
        """Admit new Jobs; a Job with a phase was admitted before."""
        checker = ManifestChecker(Terms(), [], state)
        for manifest in jobs:
            if _phase(manifest.object):
                self.jobs.append(manifest.object)
                continue
            verdict = checker.judge(manifest)
            problems = [str(error) for error in verdict.errors]
            if verdict.allowed:
                problems = self.runtime_classes.problems(verdict.patched)
            if verdict.allowed and not problems:
                self.jobs.append(verdict.patched)
            else:
                self._refuse(manifest, problems)

    def _refuse(self, manifest: Manifest, problems: Iterable[str]) -> None:
        self.refused.append(manifest.identity)
        for problem in problems:
            note(plain(f"{manifest.identity} is refused: {problem}"))

    def simulated_jobs(self) -> SimulatedJobs | None:
        """The Jobs under a controller; None where there are no Jobs."""
        if not self.jobs:
            return None
        priorities = {each.metadata.name: each.value for each in self.objects.priority_classes}
        return SimulatedJobs(
            self.jobs,
            self.groups,
            self.objects.queues,
            priorities,
            registry(),
            self.runtime_classes,
        )


def _phase(job: Raw) -> object:
    """The value of `status.state.phase`, of any type."""
    here: object = job
    for name in ("status", "state", "phase"):
        here = here.get(name) if isinstance(here, dict) else None
    return here
