"""The volumes of one pod in the node's namespaces: those of files, which follow their objects, and empty ones."""

from collections.abc import Mapping
from itertools import count

from pumice.api.meta import Raw
from pumice.embedded.node import volumes
from pumice.embedded.node.environment import Objects
from pumice.embedded.node.machine import Machine

_versions = count(1)


class PodVolumes:
    """The volumes of a pod.

    Args:
        machine: The machine that the pod is on.
        key: What tells the pod from all others in the node.
        spec: The pod's spec.

    Attributes:
        files: What was written, by volume.
    """

    def __init__(self, machine: Machine, key: str, spec: Raw) -> None:
        self.files: dict[str, volumes.Files] = {}
        self._machine = machine
        self._key = key
        self._volumes: list[Raw] = spec.get("volumes") or []
        self._group = (spec.get("securityContext") or {}).get("fsGroup")

    def read(self, pod: Raw, objects: Objects, room: Mapping[str, str]) -> dict[str, volumes.Files]:
        """What the files should be now, by volume.

        Raises:
            MissingObjectError: An object is not there.
        """
        return {
            each["name"]: volumes.files_of(pod, each, objects, room)
            for each in self._volumes
            if any(kind in each for kind in volumes.FILES_OF)
        }

    async def write(self, found: Mapping[str, volumes.Files]) -> None:
        """Write the files of those volumes whose files have changed.

        Raises:
            NodeError: They cannot be written.
        """
        for number, volume in enumerate(self._volumes):
            name = volume["name"]
            if name not in found or self.files.get(name) == found[name]:
                continue
            self.files[name] = found[name]
            await self._machine.namespaces.ask(
                "files",
                pod=self._key,
                volume=str(number),
                version=f"version{next(_versions)}",
                files={
                    path: [content.decode("latin-1"), mode]
                    for path, (content, mode) in found[name].items()
                },
                group=self._group,
            )

    async def make_empty(self) -> None:
        """Make the empty volumes.

        Raises:
            NodeError: They cannot be made.
        """
        for number, volume in enumerate(self._volumes):
            if "emptyDir" in volume or len(volume) == 1:
                limit = (volume.get("emptyDir") or {}).get("sizeLimit")
                size = volumes.size_of(limit, self._machine.size)
                message = f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{size}"'
                await self._machine.namespaces.ask(
                    "empty",
                    pod=self._key,
                    volume=str(number),
                    size=size,
                    group=self._group,
                    message=message,
                )
