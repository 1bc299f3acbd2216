"""Wiring of pods of other controllers, once and by the same plugins as for Volcano Jobs."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pumice.api import keys
from pumice.api.jobs import DEFAULT_MAX_PODS
from pumice.api.raw import object_in
from pumice.plugins.applied import problems
from pumice.plugins.interface import PluginError
from pumice.plugins.other_owners.owners import Owner
from pumice.plugins.other_owners.places import PodPlace
from pumice.plugins.other_owners.request import RequestError
from pumice.plugins.other_owners.wired_pods import WiredPods, kind_of, wired_count, wired_pods_at
from pumice.plugins.registry import Registry
from pumice.plugins.settings import DEFAULT, PluginSettings
from pumice.plugins.wiring import Wiring

_KEPT = 128
"""Maximum number of cached Jobs of owners."""


@dataclass(frozen=True, slots=True)
class Wired:
    """Pods that are wired as one Job, with its plugins.

    Attributes:
        pods: The pods.
        wiring: Its plugins.
        errors: Errors for which its pods are refused; empty if there are none.
        doubts: Warnings about its pods.
    """

    pods: WiredPods
    wiring: Wiring
    errors: tuple[str, ...]
    doubts: tuple[str, ...]


class OwnerWirings:
    """Wires pods, and caches what the pods of one owner share.

    Args:
        registry: The job plugins.
        settings: Settings of the cluster's operator.
        max_pods: Maximum number of pods of an owner.
    """

    def __init__(
        self,
        registry: Registry,
        settings: PluginSettings = DEFAULT,
        *,
        max_pods: int = DEFAULT_MAX_PODS,
    ) -> None:
        self._registry = registry
        # There is nothing of Volcano's that these pods could be wired like.
        self._settings = replace(settings, strict_upstream=False)
        self._max_pods = max_pods
        self._known: OrderedDict[tuple[object, ...], Wired] = OrderedDict()

    def of(self, owner: Owner) -> Iterator[Wired]:
        """The pods of an owner by the Jobs as which they are wired, each created when it is needed; none without plugins.

        Raises:
            RequestError: An annotation is invalid or names an unknown plugin, or the owner is too large.
        """
        for index in range(wired_count(owner, self._max_pods)):
            yield self._at(owner, index)

    def ends(self, owner: Owner) -> list[Wired]:
        """The first and the last of them; the others differ from the last only by shorter names.

        Raises:
            RequestError: As for `of`.
        """
        count = wired_count(owner, self._max_pods)
        return [self._at(owner, index) for index in sorted({0, count - 1}) if index < count]

    def _at(self, owner: Owner, index: int) -> Wired:
        meta = owner.metadata
        if not (meta.uid and meta.generation):
            return self._wired(wired_pods_at(owner, index, self._registry))
        key = (kind_of(owner), meta.namespace, meta.name, meta.uid, meta.generation, index)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._wired(wired_pods_at(owner, index, self._registry))
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found

    def find(self, owner: Owner, place: PodPlace) -> Wired | None:
        """The wired pods to which a pod belongs; None if the owner does not have the pod, or not any more.

        Raises:
            RequestError: As for `of`.
        """
        if place.uid and owner.metadata.uid and place.uid != owner.metadata.uid:
            return None
        if place.number >= wired_count(owner, self._max_pods):
            return None
        found = self._at(owner, place.number)
        return found if found.pods.find(place) is not None else None

    def pod(self, wired: Wired, place: PodPlace, pod: dict[str, Any]) -> dict[str, Any]:
        """Wire a pod of those that `find` has found; a pod that is already wired is returned unchanged.

        Raises:
            PluginError: A plugin cannot wire it.
        """
        found = wired.pods.find(place)
        if found is None or is_wired(pod):
            return pod
        task, index = found
        return wired.wiring.pod(task, index, pod)

    def _wired(self, pods: WiredPods) -> Wired:
        try:
            wiring = Wiring(pods.job, self._registry, settings=self._settings)
            idle = _idle(wiring)
        except PluginError as error:
            raise RequestError(f"{keys.PLUGINS}: {error}") from None
        found = problems(pods.job, self._registry)
        return Wired(
            pods,
            wiring,
            tuple(map(str, found.errors)),
            (*pods.doubts, *_marked(pods), *idle, *map(str, found.warnings)),
        )


def is_wired(pod: dict[str, Any]) -> bool:
    """True if a pod or a pod template is marked as wired; then it is not wired again."""
    return keys.WIRED in object_in(object_in(pod, "metadata"), "annotations")


def _marked(pods: WiredPods) -> list[str]:
    """Templates whose pods are marked as wired before they are created."""
    tasks = [task for each in pods.groups.values() for task in each]
    marked = [task.name for task in tasks if is_wired(task.template or {})]
    if not marked:
        return []
    text = (
        f"pods of {', '.join(marked)} are left as they are: their template carries {keys.WIRED}, as wired pods "
        "do; remove it"
    )
    return [text]


def _idle(wiring: Wiring) -> list[str]:
    """Results of plugins for a Job that have no effect on the owner of these pods."""
    wanted = ", ".join(wiring.job_annotations())
    return (
        [f"no scheduler reads {wanted} here: only the PodGroups of Volcano Jobs have them"]
        if wanted
        else []
    )
