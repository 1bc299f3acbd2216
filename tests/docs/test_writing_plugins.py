"""The page about writing a plugin shows the example as it is, and every promise of the contract."""

from __future__ import annotations

import pytest

from pumice.testing.contract import PROMISES
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/writing-plugins.md"


@pytest.mark.parametrize("name", ["pumice_jax.py", "test_pumice_jax.py"])
def test_it_shows_the_example_as_it_is(name: str) -> None:
    [shown] = [each for each in blocks(PAGE) if each.file == name]
    assert f"{shown.text}\n" == (ROOT / "examples/job-plugin" / name).read_text()


def test_it_explains_every_promise() -> None:
    text = PAGE.read_text()
    for name in ["declared", *(each.name for each in PROMISES)]:
        assert f"| `{name}` |" in text
