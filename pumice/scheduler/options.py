"""The parsed configuration; `config.py` reads it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.points import Extensions
from pumice.scheduler.specs import ActionSpec, PluginSpec

__all__ = ["SWITCHES", "Config", "PluginOption"]

SWITCHES: Mapping[str, bool] = {
    **{each.switch: True for each in Extensions().points().values() if each.switch},
    "enableHierarchy": False,
    "enabledClusterOrder": False,
    "EnabledClusterOrder": False,
    "enableBestNode": True,
    "enabledHyperNodeOrder": True,
    "enabledSubJobReady": True,
    "enabledSubJobPipelined": True,
    "enabledSubJobOrder": True,
    "enabledHyperNodeGradient": True,
}
"""Switches of a plugin and their defaults, spelled as unevenly as Volcano spells them: those of extension points, `enableHierarchy`, and unused ones."""


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A plugin as the file configures it.

    Attributes:
        spec: The plugin.
        tier: Number of its tier, from 0.
        arguments: Its arguments.
        switches: All switches with their values.
    """

    spec: PluginSpec
    tier: int
    arguments: Arguments
    switches: Mapping[str, bool]


@dataclass(frozen=True, eq=False, slots=True)
class Config:
    """A configuration that can be used.

    Attributes:
        actions: Steps of the cycle, each with its arguments.
        plugins: Plugins in the order of their tiers.
        warnings: What the file says without effect.
        missing: Actions and plugins that the file names and this version lacks: `action preempt`, `plugin drf`.
    """

    actions: tuple[tuple[ActionSpec, Arguments], ...]
    plugins: tuple[PluginOption, ...]
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def enforced(self, *, below: bool) -> frozenset[str]:
        """Fields of a Queue's spec that some configured plugin enforces.

        What a queue deserves is only taken back by action `reclaim`; the other fields are limits, which a plugin enforces where
        it is asked whether a queue can take a pod.

        Args:
            below: Whether there are queues below the queue, whose pods the fields limit as well.
        """
        reclaims = any(spec.name == "reclaim" for spec, _ in self.actions)
        found = {
            field
            for option in self.plugins
            if not below or (option.spec.spans_tree and option.switches["enableHierarchy"])
            for field in option.spec.enforces
            if (reclaims if field == "deserved" else option.switches["enabledAllocatable"])
        }
        return frozenset(found)

    @property
    def bind_timeout(self) -> float | None:
        """Seconds that binding the claims of a gang may take; None where no plugin looks at claims that wait."""
        for option in self.plugins:
            timeout = option.spec.bind_timeout
            if timeout is not None and option.switches["enablePredicate"]:
                return timeout(option.arguments)
        return None
