"""What the node's first process needs to know of a container: its root, its volumes, its environment, its user.

Pure: a pod, the objects that it names and the machine in, fields of requests out.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pumice.api.meta import Raw
from pumice.api.quantities import parse_milli
from pumice.embedded.node import environment, volumes
from pumice.embedded.node.demands import capabilities_of
from pumice.embedded.node.limits import MOST_PROCESSES
from pumice.embedded.node.machine import Machine

_NOT_SHOWN = ("/tmp/", "/run/")
"""Folders of the machine of which pods have their own."""


@dataclass(frozen=True, slots=True)
class ContainerSpecification:
    """A container of a pod on a machine.

    Attributes:
        machine: The machine.
        pod: The pod, with its addresses in its status.
        container: The container.
        number: Its number among init containers and containers.
        objects: ConfigMaps and Secrets.
        room: What the node has of each resource.
    """

    machine: Machine
    pod: Raw
    container: Raw
    number: int
    objects: environment.Objects
    room: Mapping[str, str]

    def of_start(self, files: Mapping[str, volumes.Files]) -> Raw:
        """What it takes to start the container.

        Args:
            files: The files of each volume that has some.

        Raises:
            MissingObjectError: Something is not there yet.
        """
        variables = self._variables()
        given = volumes.mounts_of(self.pod, self.container, self.machine.allowed, variables, files)
        return self._as_user() | {
            "layers": list(self._layers()),
            "size": volumes.size_of(self._limits().get("ephemeral-storage"), self.machine.size),
            "mounts": [asdict(each) for each in [*self._own_mounts(), *given]],
            "folder": self._folder(),
            "is_root_read_only": bool(self._own("readOnlyRootFilesystem")),
            "environment": variables,
            "command": environment.command(self.container, variables),
        }

    def of_execution(self) -> Raw:
        """What it takes to run a further program in the container.

        Raises:
            MissingObjectError: Something is not there any more.
        """
        return self._as_user() | {"environment": self._variables(), "folder": self._folder()}

    def limits(self) -> tuple[int | None, int | None]:
        """Bytes of memory and thousandths of a processor; None where there is no limit."""
        found = self._limits()
        memory = parse_milli(str(found["memory"])) // 1000 if "memory" in found else None
        return memory, parse_milli(str(found["cpu"])) if "cpu" in found else None

    def _limits(self) -> Raw:
        return (self.container.get("resources") or {}).get("limits") or {}

    def _layers(self) -> tuple[str, ...]:
        return self.machine.images.get(self.container.get("image") or "", ())

    def _own(self, field: str) -> Any:
        """A field of the security context: of the container, else of the pod."""
        own = (self.container.get("securityContext") or {}).get(field)
        return own if own is not None else self._of_pod().get(field)

    def _of_pod(self) -> Raw:
        return self.pod["spec"].get("securityContext") or {}

    def _variables(self) -> dict[str, str]:
        found = environment.environment(self.pod, self.container, self.objects, self.room)
        if not self._layers():
            found.setdefault("PATH", self.machine.path)
        return found

    def _folder(self) -> str:
        default = "/" if self._layers() else self.machine.working
        return posixpath.normpath(f"/{self.container.get('workingDir') or default}")

    def _own_mounts(self) -> list[volumes.ContainerMount]:
        """Files of names, the termination message, and the caller's folder where pods would not see it."""
        told = self.container.get("terminationMessagePath") or "/dev/termination-log"
        files = {
            "/etc/hosts": "hosts",
            "/etc/resolv.conf": "resolv.conf",
            told: f"c{self.number}.message",
        }
        found = [
            volumes.ContainerMount(own, "", own, "", target, is_folder=False, is_read_only=False)
            for target, own in files.items()
        ]
        here = self.machine.working
        if not self._layers() and f"{here}/".startswith(_NOT_SHOWN):
            found.append(
                volumes.ContainerMount(
                    "here", here, "", "", here, is_folder=True, is_read_only=True
                )
            )
        return found

    def _as_user(self) -> Raw:
        """User, groups and rights."""
        groups = [*(self._of_pod().get("supplementalGroups") or ())]
        if self._of_pod().get("fsGroup") is not None:
            groups.append(self._of_pod()["fsGroup"])
        limits = {"RLIMIT_CORE": 0}
        if self.machine.cgroups is None:
            limits["RLIMIT_NPROC"] = MOST_PROCESSES
        return {
            "user": int(self._own("runAsUser") or 0),
            "group": self._own("runAsGroup"),
            "groups": groups,
            "changes_user": self.machine.mode.is_full,
            "capabilities": capabilities_of(self.container),
            "no_new_privileges": self._own("allowPrivilegeEscalation") is False,
            "limits": limits,
        }
