"""What `pumice run` runs: objects that are admitted, and that ask for nothing that processes of this machine do not have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.api import kinds
from pumice.api.fields import plain
from pumice.cli.exits import USAGE, UserError, finish
from pumice.cli.files.manifests import Manifest, Raw
from pumice.cli.output import note

if TYPE_CHECKING:
    from pumice.cli.development.dev_cluster import SimulatedNode
    from pumice.embedded.node.machine import Machine
    from pumice.embedded.node.namespaces import Mode
    from pumice.scheduler import Config

__all__ = ["WATCHED", "RunPlan"]

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

    def check(self, mode: "Mode") -> None:
        """Check that every object is admitted, and that every pod can be run.

        Args:
            mode: The users that pods may have.

        Raises:
            UserError: There is nothing to run, or a pod asks for what is not there.
            typer.Exit: An object is refused, which is reported.
        """
        from pumice.cli.files.checking import ManifestChecker, read_settings
        from pumice.cli.workflows import admitted
        from pumice.embedded.node.demands import problems

        known = [each for each in self.manifests if kinds.of_object(each.object)]
        if not any(kinds.of_object(each.object) in WATCHED for each in known):
            files = ", ".join(dict.fromkeys(each.source.file for each in self.manifests))
            raise UserError(f"there is no Job of Volcano in {files}, and no JobFlow")
        checker = ManifestChecker(read_settings(()), (), known)
        if None in [admitted(each, checker) for each in known]:
            finish(USAGE)
        found = [
            f"{each.source.file}: {each.identity}: {problem.path}: {problem.message}"
            for each in self.manifests
            for path, spec in _pod_specs(each.object)
            for problem in problems(spec, path, mode, self.allowed)
        ]
        if found:
            raise UserError(*found)

    def announce(self, machine: "Machine") -> None:
        """Say in a line each what differs from a cluster."""
        from pumice.embedded.node.demands import has_probes

        specs = [spec for each in self.manifests for _, spec in _pod_specs(each.object)]
        note(f"mode: {machine.mode}")
        held = "CPU, memory and numbers of processes are held by cgroups"
        if machine.cgroups is None:
            held = "no cgroup may be made here; numbers of processes and bytes in files are held"
        note(f"limits: {held}")
        named = {
            str(container.get("image") or "")
            for spec in specs
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        }
        if own := ", ".join(sorted(named - set(self.images))):
            what = "programs are this machine's; --image NAME=DIR gives another root"
            note(plain(f"images: {own}: {what}"))
        if any(map(has_probes, specs)):
            note("probes: they are not asked; a container that runs is ready")


def _pod_specs(manifest: Raw) -> Iterator[tuple[str, Raw]]:
    """The specs of the pods that a Job or a JobTemplate leads to, with their paths."""
    if kinds.of_object(manifest) not in (kinds.JOB, kinds.JOB_TEMPLATE):
        return
    for number, task in enumerate((manifest.get("spec") or {}).get("tasks") or ()):
        spec = ((task or {}).get("template") or {}).get("spec")
        if spec:
            yield f"spec.tasks[{number}].template.spec", spec
