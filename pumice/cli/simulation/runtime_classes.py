"""RuntimeClasses in a simulation: pods get what their class gives them, as from an API server."""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.fields import plain
from pumice.api.meta import Raw
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.cli.output import note


class SimulatedRuntimeClasses:
    """The RuntimeClasses of the files. A pod with a uid comes from a cluster, where it was admitted before.

    A class that is not in the files has no effect, since files rarely hold all objects of a cluster. It is reported
    once.
    """

    def __init__(self, classes: Iterable[RuntimeClass] = ()) -> None:
        self._known = {each.metadata.name: each for each in classes}
        self._missing: set[str] = set()

    def admitted(self, pod: Raw) -> Raw:
        """A pod as an API server stores it; a pod that it would refuse is returned unchanged."""
        if pod["metadata"].get("uid"):
            return pod
        spec = dict(pod.get("spec") or {})
        return pod if self.why_refused(spec) else {**pod, "spec": spec}

    def why_refused(self, spec: Raw) -> str | None:
        """Apply the RuntimeClass of a pod to its spec; returns why the pod is refused, None if it is not."""
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
        """Why the API server would refuse the pods of a Job, with the path of the template."""
        problems = []
        for place, task in enumerate((job.get("spec") or {}).get("tasks") or ()):
            spec = dict((task.get("template") or {}).get("spec") or {})
            if why := self.why_refused(spec):
                problems.append(f"spec.tasks[{place}].template.spec: {why}")
        return problems
