"""Input of a simulation: the objects of files, after admission of Jobs; pods have what their RuntimeClasses give them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pumice.api import kinds
from pumice.api.fields import plain
from pumice.api.meta import Raw
from pumice.api.pods import Pod
from pumice.api.raw import key_in, object_in, text_in
from pumice.api.runtime_classes import RuntimeClass, admit
from pumice.cli.files.checking import ManifestChecker, registry
from pumice.cli.files.manifests import Manifest, decode
from pumice.cli.output import note
from pumice.scheduler.simulate import ClusterObjects
from pumice.scheduler.state.usage import STATE_KEY
from pumice.traces.jobs import ControlledJobs
from pumice.traces.submission import Admitted
from pumice.webhook.rules.rule import RuleSettings


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

    def judged(self, manifest: Manifest, checker: ManifestChecker) -> Admitted:
        """Admission of a new Job; it is refused, too, if its pods would be."""
        verdict = checker.judge(manifest)
        if not verdict.allowed:
            return Admitted(None, [str(each) for each in verdict.errors])
        problems = self._problems(verdict.patched)
        return Admitted(None if problems else verdict.patched, problems)

    def _problems(self, job: Mapping[str, Any]) -> list[str]:
        """Why the API server would refuse the pods of a Job, with the path of the template."""
        problems = []
        for place, task in enumerate((job.get("spec") or {}).get("tasks") or ()):
            spec = dict((task.get("template") or {}).get("spec") or {})
            if why := self.why_refused(spec):
                problems.append(f"spec.tasks[{place}].template.spec: {why}")
        return problems


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
        jobs: list[Manifest] = []
        pods: list[Manifest] = []
        classes: list[RuntimeClass] = []
        decoded = given.objects.by_kind() | {kinds.RUNTIME_CLASS: (RuntimeClass, classes)}
        skipped: dict[str, int] = {}
        for manifest in newest.values():
            kind = kinds.of_object(manifest.object)
            if kind == kinds.JOB:
                jobs.append(manifest)
            elif kind == kinds.POD:
                pods.append(manifest)
            elif kind == kinds.CONFIG_MAP and (usage := _usage(manifest.object)):
                given.objects.usage = usage
            elif kind in decoded:
                struct, found = decoded[kind]
                found.append(decode(manifest, struct))
                if kind == kinds.POD_GROUP:
                    given.groups.append(manifest.object)
            else:
                word = str(manifest.object["kind"])
                skipped[word] = skipped.get(word, 0) + 1
        for word, count in skipped.items():
            note(plain(f"skipped {count} {word}: the scheduler does not look at this kind"))
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
        checker = ManifestChecker(RuleSettings(), [], state)
        for manifest in jobs:
            if _phase(manifest.object):
                self.jobs.append(manifest.object)
                continue
            answer = self.runtime_classes.judged(manifest, checker)
            if answer.job is not None:
                self.jobs.append(answer.job)
            else:
                self._refuse(manifest, answer.problems)

    def _refuse(self, manifest: Manifest, problems: Iterable[str]) -> None:
        self.refused.append(manifest.identity)
        for problem in problems:
            note(plain(f"{manifest.identity} is refused: {problem}"))

    def controlled_jobs(self) -> ControlledJobs | None:
        """The Jobs under a controller, with the pods that they have; None where there are no Jobs."""
        if not self.jobs:
            return None
        controlled = ControlledJobs(
            self.objects.queues,
            self.objects.priority_classes,
            registry(),
            self.runtime_classes.admitted,
        )
        groups = {key_in(group): group for group in self.groups}
        for job in self.jobs:
            controlled.add(job, groups)
        controlled.take(self.objects.pods)
        return controlled


def _usage(config_map: Raw) -> str:
    """What namespaces have used, if a ConfigMap has that."""
    return text_in(object_in(config_map, "data"), STATE_KEY)


def _phase(job: Raw) -> object:
    """The value of `status.state.phase`, of any type."""
    return object_in(object_in(job, "status"), "state").get("phase")
