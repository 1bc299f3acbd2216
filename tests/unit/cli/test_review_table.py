"""Every row of the case tables of admission, through `pumice review`: files in, an answer and an exit code out.

What each row must be answered is asserted in `tests/unit/webhook/test_cases.py`. Here the command, with the
row's settings, cluster and resource groups as a user gives them, must say just that.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Pumice
from tests.unit.webhook.reviewing import Row, rows

TABLES = {
    name: list(found)
    for name, found in itertools.groupby(rows(), key=lambda row: row.name.partition(":")[0])
}
SAMPLES = {
    (row.path, refused): row
    for row in rows()
    if row.path.startswith(("/jobs/", "/queues/", "/pods/")) and "errored" not in row.expected
    for refused in ["codes" in row.expected]
}
"""A row of each kind of answer, for the command as a process of its own."""
A_QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
}


class StateFiles:
    """What the rows of a table find, in files that are written when the next row finds something else."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "state.json"
        self._conf = folder / "groups.yaml"

    def arguments(self, row: Row) -> list[object]:
        """The row's cluster and settings on the command line."""
        # With a queue in the state it is a whole cluster: another one does not exist.
        self._state.write_text("\n".join(json.dumps(each) for each in (A_QUEUE, *row.state)))
        arguments: list[object] = ["--state", self._state]
        if yaml.safe_load(row.conf) is not None:
            self._conf.write_bytes(row.conf)
            arguments += ["--admission-conf", self._conf]
        for assignment in row.assignments:
            arguments += ["--set", assignment]
        return arguments


@pytest.mark.parametrize("table", TABLES)
def test_a_table(pumice: Pumice, tmp_path: Path, table: str) -> None:
    files = StateFiles(tmp_path)
    for row in TABLES[table]:
        ran = pumice("review", row.path, *files.arguments(row), stdin=row.body)
        wanted = json.loads(row.admission().review(row.path, row.body))
        assert ran.json == wanted, row.name
        assert ran.code == (0 if wanted["response"]["allowed"] else 1), row.name
        refused = "codes" in row.expected or "errored" in row.expected
        assert ran.code == int(refused), row.name


@pytest.mark.parametrize("row", SAMPLES.values(), ids=[row.name for row in SAMPLES.values()])
def test_a_process_answers_as_the_function_does(tmp_path: Path, row: Row) -> None:
    arguments = [str(each) for each in StateFiles(tmp_path).arguments(row)]
    command = [sys.executable, "-m", "pumice", "review", row.path, *arguments]
    ran = subprocess.run(command, input=row.body, capture_output=True, check=False)

    assert json.loads(ran.stdout) == json.loads(row.admission().review(row.path, row.body))
    assert ran.stderr == b""
    assert ran.returncode == int("codes" in row.expected)
