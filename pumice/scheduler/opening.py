"""The beginning of a session: every configured plugin registers its functions."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Literal

from pumice.scheduler.actions.elect import restore
from pumice.scheduler.budget import Budget
from pumice.scheduler.options import Config
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session import Session
from pumice.scheduler.state import ClusterState

__all__ = ["Measure", "Step", "idle_actions", "open_session", "unmeasured"]

Step = Literal["cycle", "opening", "action", "plugin"]
"""A part of a cycle: the whole, the beginning of its session, an action, and a plugin's part in the beginning."""

Measure = Callable[[Step, str], AbstractContextManager[None]]
"""Measures the block that it is entered for: a step, and the name of the action or plugin."""

_UNMEASURED = nullcontext()


def unmeasured(_step: Step, _name: str) -> AbstractContextManager[None]:
    """A measure that does nothing."""
    return _UNMEASURED


def open_session(
    state: ClusterState,
    config: Config,
    now: float,
    measure: Measure = unmeasured,
    budget: Budget | None = None,
) -> Session:
    """Begin a session with the plugins of a configuration, in the order of their tiers.

    Args:
        state: The cluster, settled.
        config: The configuration.
        now: The moment, UNIX seconds.
        measure: Measures how long each plugin takes.
        budget: How long the cycle may take; no limit if None.

    Raises:
        Exception: A plugin failed; the state is as before.
    """
    session = Session(state, frozenset(spec.name for spec, _ in config.actions), now, budget)
    try:
        for option in config.plugins:
            with measure("plugin", option.spec.name):
                plugin = option.spec.build(option.arguments)
                plugin.open(
                    session.view,
                    Registrar(session.extensions, option.spec.name, option.tier, option.switches),
                )
        if "elect" in session.view.actions:
            restore(session)
    except Exception:
        session.close()
        raise
    return session


def idle_actions(config: Config) -> tuple[str, ...]:
    """Names of configured actions that do nothing, because no configured plugin registers what they ask for."""
    with suppress(Exception):  # of a plugin that fails; the first cycle reports it
        session = open_session(ClusterState(), config, 0.0)
        session.close()
        asking = [spec for spec, _ in config.actions if spec.asks]
        return tuple(spec.name for spec in asking if not getattr(session.extensions, spec.asks))
    return ()
