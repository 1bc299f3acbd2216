"""RuntimeClasses of a simulation: what an API server writes into new pods that name one."""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.fields import plain
from pumice.api.meta import Raw
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.cli.output import note

__all__ = ["SimulatedRuntimeClasses"]


class SimulatedRuntimeClasses:
    """The classes of the files. A pod with a uid comes from a cluster, where it has been admitted already.

    A class that is not in the files changes nothing, as files rarely hold all that a cluster has; it is reported once.
    """

    def __init__(self, classes: Iterable[RuntimeClass] = ()) -> None:
        self._known = {each.metadata.name: each for each in classes}
        self._missing: set[str] = set()

    def admitted(self, pod: Raw) -> Raw:
        """A pod as an API server keeps it; one that it would refuse as it is given."""
        if pod["metadata"].get("uid"):
            return pod
        spec = dict(pod.get("spec") or {})
        return pod if self.why_refused(spec) else {**pod, "spec": spec}

    def why_refused(self, spec: Raw) -> str | None:
        """Write what its class says into the spec of a pod; why the pod is refused, None if it is not."""
        name = spec.get("runtimeClassName")
        found = self._known.get(name) if name else None
        if name and found is None:
            if name not in self._missing:
                self._missing.add(name)
                note(
                    plain(
                        f'RuntimeClass "{name}" is not in the state: its overhead, node selector and '
                        "tolerations do not count"
                    )
                )
            return None
        return admit(spec, found)

    def problems(self, job: Mapping[str, Any]) -> list[str]:
        """Why the pods of a Job would be refused, with the path of the template."""
        problems = []
        for place, task in enumerate((job.get("spec") or {}).get("tasks") or ()):
            spec = dict((task.get("template") or {}).get("spec") or {})
            if why := self.why_refused(spec):
                problems.append(f"spec.tasks[{place}].template.spec: {why}")
        return problems
