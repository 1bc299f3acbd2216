"""How much a component logs: by its own flag, or by Volcano's."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from pumice.cli.options import Level
from pumice.cli.processes import logs


@pytest.mark.parametrize(
    ("arguments", "level", "others"),
    [
        ([], Level.INFO, []),
        (["--v=4", "2>&1"], Level.DEBUG, ["2>&1"]),
        (["-v", "5", "--logtostderr"], Level.DEBUG, ["--logtostderr"]),
        (["-v=3"], Level.INFO, []),
        (["--v", "3"], Level.INFO, []),
        (["-v", "--alsologtostderr"], Level.INFO, ["--alsologtostderr"]),
        (["--v=many", "--version", "-vv"], Level.INFO, ["--version", "-vv"]),
    ],
)
def test_volcanos_verbosity_is_understood(
    arguments: list[str], level: Level, others: list[str]
) -> None:
    assert logs.verbosity(Level.INFO, arguments) == (level, others)
    assert logs.verbosity(Level.DEBUG, arguments) == (Level.DEBUG, others)


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Logging is afterwards as it was."""
    root, ours = logging.getLogger(), logging.getLogger("pumice")
    before = list(root.handlers), root.level, ours.level
    configured = structlog.get_config()
    yield
    root.handlers[:], level, our_level = before
    root.setLevel(level)
    ours.setLevel(our_level)
    structlog.configure(**configured)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("level", "told"),
    [
        (Level.DEBUG, ["ours debug", "ours info", "ours error", "theirs info", "theirs error"]),
        (Level.INFO, ["ours info", "ours error", "theirs info", "theirs error"]),
        (Level.ERROR, ["ours error", "theirs error"]),
    ],
)
def test_a_level_is_about_pumice_and_libraries_tell_no_more(
    level: Level, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure(json=True, level=level)
    for who, name in (("ours", "pumice.test.levels"), ("theirs", "library")):
        for what in ("debug", "info", "error"):
            getattr(logging.getLogger(name), what)("%s %s", who, what)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == told


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("json_lines", [False, True])
def test_names_and_messages_do_not_control_the_terminal(
    json_lines: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e\x9b1A\nforged"
    logs.configure(json=json_lines)
    logging.getLogger("pumice.test").warning("Job %s waits", hostile)
    structlog.get_logger("pumice.test").info("is created", phase=hostile.partition("\n")[0])
    try:
        raise ValueError(hostile)
    except ValueError:
        logging.getLogger("pumice.test").exception("failed")
    printed = capsys.readouterr().err
    assert not [each for each in printed if not each.isprintable() and each != "\n"]
    assert not [line for line in printed.splitlines()[:3] if line.startswith("forged")]
    assert "ValueError: " in printed
