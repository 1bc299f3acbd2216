"""What `pumice run` prints of containers: each pod has a colour of its own on a terminal, and restarted containers a number."""

import asyncio
import io
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pumice.cli.running.reporting import Printer


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def pod(name: str, containers: int = 1) -> Any:
    return cast("Any", SimpleNamespace(name=name, states=[None] * containers))


async def printed() -> None:
    printer = Printer()
    printer.show(pod("a-0"), "main", 0, b"one")
    printer.show(pod("a-1"), "main", 0, b"two")
    printer.show(pod("a-0"), "main", 1, b"three")
    printer.show(pod("a-2", 2), "side", 0, b"\x1b[2Jfour")
    await asyncio.sleep(0)


def test_each_pod_has_a_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    asyncio.run(printed())
    lines = shown.getvalue().splitlines()
    assert lines[:3] == [
        "\x1b[36ma-0\x1b[0m | one",
        "\x1b[32ma-1\x1b[0m | two",
        "\x1b[36ma-0#2\x1b[0m | three",
    ]
    assert lines[3].startswith("\x1b[33ma-2/side\x1b[0m | ")
    assert "\x1b[2J" not in lines[3]


def test_a_file_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", shown := io.StringIO())
    asyncio.run(printed())
    assert shown.getvalue().splitlines()[:3] == ["a-0 | one", "a-1 | two", "a-0#2 | three"]
