"""Rows of the case tables of admission through `pumice review`: files in, an answer and an exit code out.

What every row must be answered is asserted in `tests/unit/webhook/test_cases.py`. Here the command, with the
row's settings, cluster and resource groups as a user gives them, must say just that, for rows that together have
each endpoint and answer, each setting, and each kind of object that an answer depends on.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Pumice
from tests.unit.webhook.reviewing import Row, rows

PROCESSES = {
    row.path: row
    for row in rows()
    if row.path in ("/jobs/mutate", "/jobs/validate") and "errored" not in row.expected
}
"""A row that is admitted with a patch, and one that is refused, for the command as a process of its own."""
A_QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
}


def samples() -> list[Row]:
    """Rows of which each brings something that the rows before it did not."""
    seen: set[object] = set()
    found = []
    for row in rows():
        said = tuple(key in row.expected for key in ("codes", "errored"))
        traits: set[object] = {(row.path, *said), *row.assignments, row.conf}
        kinds = {each["kind"] for each in row.state} - seen
        traits |= {kind for kind in kinds if answer(without(row, kind)) != answer(row)}
        if traits - seen:
            seen |= traits
            found.append(row)
    return found


def without(row: Row, kind: str) -> Row:
    return replace(row, state=[each for each in row.state if each["kind"] != kind])


def answer(row: Row) -> bytes:
    return row.admission().review(row.path, row.body)


def arguments(row: Row, folder: Path) -> list[object]:
    """The row's cluster and settings on the command line, and the files that it names."""
    state, conf = folder / "state.json", folder / "groups.yaml"
    # With a queue in the state it is a whole cluster: another one does not exist.
    state.write_text("\n".join(json.dumps(each) for each in (A_QUEUE, *row.state)))
    found: list[object] = ["--state", state]
    if yaml.safe_load(row.conf) is not None:
        conf.write_bytes(row.conf)
        found += ["--admission-conf", conf]
    for assignment in row.assignments:
        found += ["--set", assignment]
    return found


def test_the_command_answers_as_the_function_does(pumice: Pumice, tmp_path: Path) -> None:
    for row in samples():
        ran = pumice("review", row.path, *arguments(row, tmp_path), stdin=row.body)
        wanted = json.loads(answer(row))
        assert ran.json == wanted, row.name
        assert ran.code == (0 if wanted["response"]["allowed"] else 1), row.name
        refused = "codes" in row.expected or "errored" in row.expected
        assert ran.code == int(refused), row.name


@pytest.mark.parametrize("row", PROCESSES.values(), ids=[row.name for row in PROCESSES.values()])
def test_a_process_answers_as_the_function_does(tmp_path: Path, row: Row) -> None:
    given = [str(each) for each in arguments(row, tmp_path)]
    command = [sys.executable, "-m", "pumice", "review", row.path, *given]
    ran = subprocess.run(command, input=row.body, capture_output=True, check=False)

    assert json.loads(ran.stdout) == json.loads(answer(row))
    assert ran.stderr == b""
    assert ran.returncode == int("codes" in row.expected)
