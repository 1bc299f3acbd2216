"""What `pumice run` runs: objects that are admitted, and that ask for nothing that processes of this machine do not have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.api import kinds
from pumice.api.fields import plain
from pumice.api.meta import Raw
from pumice.cli.exits import USAGE, UserError, finish
from pumice.cli.files.manifests import Manifest
from pumice.cli.output import note
from pumice.cli.running.local import announce_machine

if TYPE_CHECKING:
    from pumice.cli.development.dev_nodes import SimulatedNode
    from pumice.cli.files.checking import ManifestChecker
    from pumice.embedded.node.environment import Objects
    from pumice.embedded.node.machine import Machine
    from pumice.embedded.node.namespaces import Mode
    from pumice.scheduler import Config

WATCHED = (kinds.JOB, kinds.JOB_FLOW)
"""Kinds of objects that are followed to their end."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run.

    Attributes:
        manifests: Objects of the files.
        nodes: What this machine is for the scheduler.
        images: Folders of images by name, from the bottom up.
        allowed: Folders of the machine that pods may mount.
        config: Configuration of the scheduler; the default if None.
        timeout: Seconds until what runs is aborted; None for ever.
        keep: Whether the cluster goes on when all has ended.
    """

    manifests: Sequence[Manifest]
    nodes: "Sequence[SimulatedNode]"
    images: Mapping[str, Sequence[Path]]
    allowed: Sequence[Path]
    config: "Config | None"
    timeout: float | None
    keep: bool

    @property
    def state(self) -> list[Manifest]:
        """The objects of the files, and the namespaces in which they are."""
        from pumice.embedded.cluster import NAMESPACES

        made = {each.name for each in self.manifests if each.object.get("kind") == "Namespace"}
        first = {each.namespace: each.source for each in reversed(self.manifests)}
        meta = kinds.NAMESPACE.type_meta
        return [
            *(
                Manifest({**meta, "metadata": {"name": name}}, source)
                for name, source in first.items()
                if name and name not in made and name not in NAMESPACES
            ),
            *self.manifests,
        ]

    def check(self, mode: "Mode") -> list[Raw]:
        """Check that every object is admitted, and that every pod can be run.

        Returns:
            The specs of the pods, of each task one.

        Raises:
            UserError: There is nothing to run, or a pod asks for what is not there.
            typer.Exit: An object is refused, which is reported.
        """
        from pumice.cli.files.checking import ManifestChecker, read_settings
        from pumice.embedded.node.demands import missing, problems

        known = [each for each in self.manifests if kinds.of_object(each.object)]
        if not any(kinds.of_object(each.object) in WATCHED for each in known):
            raise UserError(self._nothing_to_run())
        templates = list(_templates(known, ManifestChecker(read_settings(()), (), known)))
        found = [
            f"{template.where}: {problem.path}: {problem.message}"
            for template in templates
            for problem in (
                *problems(template.spec, template.path, mode, self.allowed),
                *missing(template.spec, template.path, template.objects),
            )
        ]
        if found:
            raise UserError(*found)
        return [template.spec for template in templates]

    def _nothing_to_run(self) -> str:
        files = ", ".join(dict.fromkeys(each.source.file for each in self.manifests))
        kind_of = (
            (each.object.get("kind"), each.object.get("apiVersion")) for each in self.manifests
        )
        found = ", ".join(dict.fromkeys(f"{kind} of {version}" for kind, version in kind_of))
        expected = " or ".join(f"a {kind.kind} of {kind.api_version}" for kind in WATCHED)
        other = f", found {found}; `pumice dev --run` runs pods of other kinds" if found else ""
        return plain(f"nothing in {files or 'the files'} can be run: expected {expected}{other}")

    def announce(self, specs: Sequence[Raw], machine: "Machine") -> None:
        """Say in a line each what differs from a cluster."""
        from pumice.embedded.node.demands import has_probes

        announce_machine(machine)
        named = {
            str(container.get("image") or "")
            for spec in specs
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        }
        if own := ", ".join(sorted(named - set(self.images))):
            what = "programs are this machine's; --image NAME=DIR gives another root"
            note(plain(f"images: {own}: {what}"))
        if all((spec.get("restartPolicy") or "Always") == "Always" for spec in specs):
            what = "containers are started again whenever they end, as restartPolicy Always is the default"
            note(f"restart: {what}; with Never or OnFailure the Jobs end by themselves")
        if any(map(has_probes, specs)):
            note("probes: they are not asked; a container that runs is ready")


@dataclass(frozen=True, slots=True)
class _PodTemplate:
    """The first pod of a task, as plugins wire it.

    Attributes:
        where: File and object.
        path: Where the template stands in it.
        spec: The pod's spec.
        objects: ConfigMaps and Secrets of its namespace.
    """

    where: str
    path: str
    spec: Raw
    objects: "Objects"


def _templates(manifests: Sequence[Manifest], checker: "ManifestChecker") -> Iterator[_PodTemplate]:
    """The pods that Jobs and JobFlows lead to, a task once.

    Raises:
        UserError: They are more than this machine may run.
        typer.Exit: An object is refused, which is reported.
    """
    from pumice.api.keys import TASK_SPEC
    from pumice.cli.files.checking import registry
    from pumice.cli.workflows import admitted, jobs_of
    from pumice.controller.render import render

    of_templates = [
        each for each in manifests if kinds.of_object(each.object) == kinds.JOB_TEMPLATE
    ]
    flows = [each for each in manifests if kinds.of_object(each.object) == kinds.JOB_FLOW]
    # `jobs_of` reports on the flows, and on the templates that they name.
    later = {kinds.JOB_FLOW, kinds.JOB_TEMPLATE} if flows else set()
    ready, is_refused = [], False
    for each in manifests:
        kind = kinds.of_object(each.object)
        if kind in later:
            continue
        job = admitted(each, checker)
        is_refused |= job is None
        if kind == kinds.JOB and job is not None:
            ready.append((each, job))
    for flow in flows:
        found = jobs_of(flow, of_templates, checker)
        is_refused |= found is None
        for each in found or ():
            job = admitted(each, checker)
            is_refused |= job is None
            if job is not None:
                ready.append((each, job))
    if is_refused:
        finish(USAGE)
    _bound([job for _, job in ready])
    given = {(each.object["kind"], each.namespace, each.name): each.object for each in manifests}
    for each, job in ready:
        made = render(job, registry())
        known = {
            (found["kind"], each.namespace, found["metadata"]["name"]): found for found in made
        }
        objects = partial(_object, given | known, each.namespace)
        pods = [found for found in made if found["kind"] == "Pod"]
        first = {pod["metadata"]["annotations"].get(TASK_SPEC): pod for pod in reversed(pods)}
        for number, task in enumerate(job["spec"].get("tasks") or ()):
            if task["name"] in first:
                path = f"spec.tasks[{number}].template.spec"
                where = f"{each.source.file}: {each.identity}"
                yield _PodTemplate(where, path, first[task["name"]]["spec"], objects)


def _bound(jobs: Sequence[Raw]) -> None:
    """Refuse no pods, and more than this machine may run, before one is made.

    Raises:
        UserError: They are none, or more.
    """
    from pumice.embedded.node.kubelet import MOST_PODS

    number = sum(task.get("replicas", 1) for job in jobs for task in job["spec"].get("tasks") or ())
    if not number:
        raise UserError("the Jobs of the files have no pods: expected `replicas` of at least 1")
    if number > MOST_PODS:
        what = f"the files ask for {number} pods; a run has at most {MOST_PODS} of them"
        raise UserError(f"{what}: lower `replicas`, or run the Jobs one after the other")


def _object(
    known: Mapping[tuple[str, str, str], Raw], namespace: str, kind: str, name: str
) -> Raw | None:
    return known.get((kind, namespace, name))
