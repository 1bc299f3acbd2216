"""Runs the commands of a page, and looks at what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.docs.pages import ROOT, Block, Command, blocks, commands, mismatch
from tests.support.forked import programs

LIMIT = 60  # seconds for a command

# make sets the checkout up before it does what it is asked for; a test must leave it as it is.
RECIPES = {"make demo": "python examples/demo.py"}


_EXPORT = re.compile(r"export (\w+)=([\w./-]+)")
_LOGGED = re.compile(r"(?m)^[IWE]\d{4} .*\.go:\d+\] .*\n")
"""What the library of kubectl and helm logs of itself on a busy machine, such as that a watch ended."""


def nothing() -> None:
    """What happens between two commands where nothing has to."""


def run_page(
    page: Path,
    folder: Path,
    cluster: dict[str, str] | None = None,
    between: Callable[[], None] = nothing,
) -> None:
    """Write the page's files and run its commands, all in one folder.

    Args:
        page: The page.
        folder: Where; it gets what a checkout has beside the documentation.
        cluster: Further environment of a page that has blocks that talk to an API server.
        between: Called after each command.
    """
    for name in ("charts", "deploy", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    whole = page.name == "README.md"  # what readers try first starts as it does for them
    environment = {**os.environ, **(cluster or {}), "PATH": search_path(cluster or {}, whole=whole)}
    environment["PYTHONUNBUFFERED"] = (
        "1"  # as on a terminal, output and messages come in their order
    )
    environment["XDG_STATE_HOME"] = str(folder / ".state")  # clusters of this page alone
    try:
        for block in blocks(page):
            if block.file:
                (folder / block.file).write_text(f"{block.text}\n")
            elif block.is_run:
                run_block(block, folder, environment, between)
    finally:
        if "pumice dev " in page.read_text():
            run_command(Command("pumice dev stop --all", ()), folder, environment, 0)


def run_block(
    block: Block,
    folder: Path,
    environment: dict[str, str],
    between: Callable[[], None],
) -> None:
    shown = list(commands(block))
    for command in shown:
        if variable := _EXPORT.fullmatch(command.text):
            environment[variable[1]] = variable[2]  # a page is read in one shell
            continue
        wanted = block.exit_code if command is shown[-1] else 0
        difference = run_command(command, folder, environment, wanted)
        # What waits for something waits for a machine that has nothing else to do.
        late = time.monotonic() + LIMIT
        while difference and command.text.startswith("sleep ") and time.monotonic() < late:
            difference = run_command(command, folder, environment, wanted)
        where = f"{block.page.relative_to(ROOT)}:{block.line}: $ {command.text}"
        assert not difference, f"{where}\n{difference}"
        between()


def run_command(command: Command, folder: Path, environment: dict[str, str], wanted: int) -> str:
    """Run a command; how it differs from what is shown, empty where it does not."""
    answer = subprocess.run(
        ["bash", "-c", RECIPES.get(command.text, command.text)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if answer.returncode != wanted:
        return f"ended with exit code {answer.returncode}, expected {wanted}\n{answer.stdout}"
    printed = _LOGGED.sub("", answer.stdout)
    return mismatch(command.output, printed) if command.output else ""


def search_path(environment: dict[str, str], *, whole: bool) -> str:
    """The PATH of commands; unless they start as a whole, `pumice` is forked from a process that has imported it."""
    own = str(Path(sys.executable).parent)
    first = [] if whole else [str(programs())]
    return os.pathsep.join(
        [*first, *filter(None, (own, environment.get("PATH"))), os.environ["PATH"]]
    )
