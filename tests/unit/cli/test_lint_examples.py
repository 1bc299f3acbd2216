"""Every manifest in `examples/` is linted, and none is refused or warned about that is not meant to be."""

import pytest

from tests import tables
from tests.unit.cli.conftest import EXAMPLES, Pumice

VERDICTS = {file: word for word, files in tables.table("examples").items() for file in files}
THERE_ALREADY = ("queues.yaml", "running.yaml")


pytestmark = pytest.mark.usefixtures("example_plugin")


def test_the_table_has_them_all() -> None:
    files = [file.relative_to(EXAMPLES).as_posix() for file in EXAMPLES.rglob("*.yaml")]
    assert sorted(VERDICTS) == sorted(files)


@pytest.mark.parametrize("file", VERDICTS)
def test_an_example(pumice: Pumice, file: str) -> None:
    state: list[object] = []
    if file.startswith("mistakes/"):
        for each in THERE_ALREADY:
            state += ["--state", EXAMPLES / "mistakes" / each]
    ran = pumice("lint", EXAMPLES / file, *state, "-o", "json")
    if VERDICTS[file] == "admitted":
        assert ran.code == 0
        assert [(each["errors"], each["warnings"]) for each in ran.json] == [([], [])] * len(
            ran.json
        )
    else:
        assert ran.code == 1
        assert any(each["errors"] for each in ran.json)
