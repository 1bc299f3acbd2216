"""Plugins that Volcano's users name and this version does not have.

A Job that names one is admitted, so that existing manifests keep working, and warned about: its
pods are not wired for it. What such a plugin requires is still added, and the one refusal that
Volcano makes for one of them (an MPI job without its master) is still made.
"""

from dataclasses import dataclass

from pumice.plugins.arguments import PORT, TEXT, Argument, ArgumentSpec

__all__ = ["UNAVAILABLE", "Unavailable"]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A known name without a plugin behind it.

    Attributes:
        name: Name in `spec.plugins`.
        requires: Plugins that admission adds to a Job that names it.
        arguments: Its flags, None where they are not looked at.
        needs_task: Argument that names a task which the Job must have.
    """

    name: str
    requires: tuple[str, ...] = ()
    arguments: ArgumentSpec | None = None
    needs_task: str = ""


_MPI_ARGUMENTS = ArgumentSpec(
    Argument("master", TEXT, "master", "task that starts the computation"),
    Argument("worker", TEXT, "worker", "task that takes part in it"),
    Argument("port", PORT, 22, "port of the workers' ssh server"),
)

UNAVAILABLE: tuple[Unavailable, ...] = (
    Unavailable("ssh"),
    Unavailable("mpi", ("svc", "ssh"), _MPI_ARGUMENTS, needs_task="master"),
    Unavailable("pytorch", ("svc",)),
    Unavailable("ray", ("svc",)),
    Unavailable("mxnet", ("svc",)),
    Unavailable("hcclrank"),
)
