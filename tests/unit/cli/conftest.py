"""The command, run in this process."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from pumice.cli import main
from pumice.cli.files import checking
from tests.support.installed import install

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True)
class Ran:
    """What became of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, which is JSON."""
        return msgspec.json.decode(self.out)


Pumice = Callable[..., Ran]


def texts(*objects: dict[str, Any]) -> str:
    """Objects as a stream of documents."""
    return "\n".join(json.dumps(each) for each in objects)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command configures the logs of its process, which here is that of all tests."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    configured = structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configured)


@pytest.fixture
def pumice(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Pumice:
    """Run `pumice ARGUMENTS…` with a text on stdin."""

    def run(*arguments: object, stdin: str | bytes = "") -> Ran:
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def example_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example plugin is installed, as its README says."""
    install(EXAMPLES / "job-plugin", tmp_path, monkeypatch)
    checking.registry.cache_clear()
    yield
    checking.registry.cache_clear()
