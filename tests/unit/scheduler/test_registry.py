"""What is installed beside the built-in plugins and actions."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from pumice.scheduler import default_registry, registry
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec, PluginSpec
from pumice.scheduler.view import SessionView


class Nothing:
    """A plugin that registers nothing."""

    def __init__(self, _arguments: Arguments) -> None:
        pass

    def open(self, _session: SessionView, _register: Registrar) -> None:
        pass


def _idle(_session: Session, _arguments: Arguments) -> None:
    pass


PLUGIN = PluginSpec("theirs", "Does nothing.", Nothing)
ACTION = ActionSpec("rest", "Does nothing.", _idle)


def _install(monkeypatch: pytest.MonkeyPatch, **groups: str) -> None:
    found = [EntryPoint("x", value, f"pumice.scheduler_{name}") for name, value in groups.items()]
    monkeypatch.setattr(registry, "entry_points", lambda: EntryPoints(found))


def test_installed_plugins_and_actions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, plugins=f"{__name__}:PLUGIN", actions=f"{__name__}:ACTION")
    found = default_registry()
    assert found.plugins["theirs"].name == "theirs"
    assert found.actions["rest"].name == "rest"
    assert "gang" in found.plugins


def test_an_entry_point_must_name_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, plugins="pumice.scheduler.plugins.gang:Gang")
    expected = (
        r"entry point x of pumice.scheduler_plugins \(.*\) must name a PluginSpec, found type"
    )
    with pytest.raises(ValueError, match=expected):
        default_registry()


def test_a_name_cannot_be_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, plugins="pumice.scheduler.plugins.gang:SPEC")
    with pytest.raises(ValueError, match="scheduler plugin gang is registered twice"):
        default_registry()
