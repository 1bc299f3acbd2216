"""Specifications of plugins and actions: name, arguments, and how to build or run them."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from pumice.scheduler.arguments import Arguments, SchedulerArgument
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session.session import Session
from pumice.scheduler.view import SessionView


class Plugin(Protocol):
    """A plugin of one session. It registers functions and reads the view."""

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register functions for this session."""


class LastingPlugin:
    """A plugin that is built and registers once, as long as the configuration stays the same and has no plugins of other kinds.

    What it keeps of a session it begins again in each.
    """

    _session: SessionView

    @property
    def lasts(self) -> bool:
        """Whether what it registered may serve the next session; where it cannot, all plugins are built again at once."""
        return True

    def reopen(self, session: SessionView) -> bool:
        """Begin another session; False if it would register other functions for it, so that all plugins are built again."""
        self._session = session
        return True


class PluginSpec(msgspec.Struct, frozen=True):
    """A scheduler plugin.

    Attributes:
        name: Name in the configuration file.
        summary: What it decides, one sentence.
        build: Makes the plugin: for one session, unless it is a `LastingPlugin`.
        arguments: Arguments that it understands.
        enforces: Fields of a Queue's spec that it enforces, of `capability`, `deserved` and `guarantee`.
        spans_tree: Whether, with switch `enableHierarchy`, these fields of a queue hold for all queues below it together.
        behind: Plugins that decide about the order of gangs before this one if they stand before it, so that it seldom has anything to decide.
        bind_timeout: Seconds that binding the claims of a gang may take, by the plugin's arguments, if the plugin looks at
            claims that wait; otherwise the function is not there, or says None.
    """

    name: str
    summary: str
    build: Callable[[Arguments], Plugin]
    arguments: tuple[SchedulerArgument, ...] = ()
    enforces: frozenset[str] = frozenset()
    spans_tree: bool = False
    behind: frozenset[str] = frozenset()
    bind_timeout: Callable[[Arguments], float | None] | None = None


class ActionSpec(msgspec.Struct, frozen=True):
    """A step of the cycle.

    Attributes:
        name: Name in the configuration file.
        summary: What it does, one sentence.
        run: Does it.
        arguments: Arguments that it understands, under `configurations`.
        needs: Extension point without which it does nothing, such as `target_job`; empty for none.
    """

    name: str
    summary: str
    run: Callable[[Session, Arguments], None]
    arguments: tuple[SchedulerArgument, ...] = ()
    needs: str = ""
