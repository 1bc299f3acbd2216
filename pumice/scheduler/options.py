"""The parsed configuration, and the beginning of a session with it: every configured plugin registers its functions.

`config.py` reads the configuration.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from pumice.scheduler.actions.elect import restore
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.budget import Budget
from pumice.scheduler.model.facts import NodeFacts
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.points import (
    RECLAIMING,
    Extension,
    Extensions,
    FilterPoint,
    FilterResult,
    PodClass,
)
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec, LastingPlugin, PluginSpec
from pumice.scheduler.state.watched_cluster import ClusterState

SWITCHES: Mapping[str, bool] = {
    **{each.switch: True for each in Extensions.points().values() if each.switch},
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


class PluginOption(msgspec.Struct, frozen=True):
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


class Config(msgspec.Struct, frozen=True, eq=False):
    """A configuration that can be used.

    Attributes:
        actions: Steps of the cycle, each with its arguments.
        plugins: Plugins in the order of their tiers.
        warnings: What the file says without effect.
        missing: Plugins that the file names and this version lacks: `plugin extender`.
    """

    actions: tuple[tuple[ActionSpec, Arguments], ...]
    plugins: tuple[PluginOption, ...]
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def plugin(self, name: str) -> PluginOption | None:
        """A configured plugin by its name."""
        return next((each for each in self.plugins if each.spec.name == name), None)

    def enforced(self, *, below: bool) -> frozenset[str]:
        """Fields of a Queue's spec that some configured plugin enforces.

        What a queue deserves is only taken back by actions `reclaim` and `gangreclaim`; the other fields are limits, which a plugin enforces where
        it is asked whether a queue can take a pod.

        Args:
            below: Whether there are queues below the queue, whose pods the fields limit as well.
        """
        reclaims = any(spec.name in RECLAIMING for spec, _ in self.actions)
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


Step = Literal["cycle", "opening", "action", "plugin"]
"""A part of a cycle: the whole, the beginning of its session, an action, and a plugin's part in the beginning."""

Measure = Callable[[Step, str], AbstractContextManager[None]]
"""Measures the block that it is entered for: a step, and the name of the action or plugin."""

_UNMEASURED = nullcontext()


def unmeasured(_step: Step, _name: str) -> AbstractContextManager[None]:
    """A measure that does nothing."""
    return _UNMEASURED


class _Lasting(NamedTuple):
    """What serves the sessions of a configuration of lasting plugins: these, and what they have registered."""

    config: Config
    actions: frozenset[str]
    plugins: tuple[LastingPlugin, ...]
    extensions: Extensions


def open_session(
    state: ClusterState,
    config: Config,
    now: float,
    measure: Measure = unmeasured,
    budget: Budget | None = None,
) -> Session:
    """Begin a session with the plugins of a configuration, in the order of their tiers, on a settled state.

    Raises:
        Exception: A plugin failed; the state is as before.
    """
    known, state.lasting = state.lasting, None
    lasting = known if isinstance(known, _Lasting) and known.config is config else None
    actions = lasting.actions if lasting else frozenset([spec.name for spec, _ in config.actions])
    session = Session(state, actions, now, budget, lasting and lasting.extensions)
    state.usage.begin_session()
    try:
        is_reopened = lasting is not None and _reopen(lasting, session, measure)
        state.lasting = lasting if is_reopened else _open(config, session, measure)
        state.usage.stop_unless_asked()
        if "elect" in session.view.actions:
            restore(session)
    except Exception:
        session.close()
        raise
    return session


def _reopen(lasting: _Lasting, session: Session, measure: Measure) -> bool:
    """Begin a session with the plugins of the one before; False if one of them would register other functions."""
    if measure is unmeasured:
        view = session.view
        for plugin in lasting.plugins:  # noqa: SIM110 - in every cycle
            if not plugin.reopen(view):
                return False
        return True
    for option, plugin in zip(lasting.config.plugins, lasting.plugins, strict=True):
        with measure("plugin", option.spec.name):
            if not plugin.reopen(session.view):
                return False
    return True


def _open(config: Config, session: Session, measure: Measure) -> _Lasting | None:
    """Build all plugins and have them register; None if one of them does not last."""
    extensions = session.extensions
    extensions.clear()
    judge = FilterPoint(partial(_unready, session.state.facts), "fixed", by_rules=True)
    extensions.node_filter.append(Extension(-1, "", judge))
    lasting: list[LastingPlugin] = []
    for option in config.plugins:
        with measure("plugin", option.spec.name):
            plugin = option.spec.build(option.arguments)
            plugin.open(
                session.view,
                Registrar(extensions, option.spec.name, option.tier, option.switches),
            )
        lasting += [plugin] if isinstance(plugin, LastingPlugin) and plugin.lasts else []
    is_whole = len(lasting) == len(config.plugins)
    actions = session.view.actions
    return _Lasting(config, actions, tuple(lasting), extensions) if is_whole else None


def _unready(facts: NodeFacts, _pods: PodClass, rows: Rows) -> FilterResult | None:
    if facts.are_all_ready:
        return None
    unready = facts.unready[rows.index]
    if not unready.any():
        return None
    return FilterResult(unready.astype(np.int64), ("node(s) were not ready",))


def idle_actions(config: Config) -> tuple[str, ...]:
    """Names of configured actions that do nothing, because no configured plugin registers what they ask for."""
    with suppress(Exception):  # of a plugin that fails; the first cycle reports it
        session = open_session(ClusterState(), config, 0.0)
        session.close()
        needing = [spec for spec, _ in config.actions if spec.needs]
        return tuple(spec.name for spec in needing if not getattr(session.extensions, spec.needs))
    return ()
