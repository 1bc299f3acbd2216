"""The page about writing a plugin shows the example as it is, and every sentence of the contract."""

from __future__ import annotations

from pumice.cli.contract.properties import PROPERTIES
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/writing-plugins.md"


def test_it_shows_the_example_as_it_is() -> None:
    [shown] = [each for each in blocks(PAGE) if each.file == "pumice_jax.py"]
    assert f"{shown.text}\n" == (ROOT / "examples/job-plugin/pumice_jax.py").read_text()


def test_it_explains_every_sentence() -> None:
    text = PAGE.read_text()
    for name in ["declared", "quick", *(each.name for each in PROPERTIES), "ordered"]:
        assert f"| `{name}` |" in text
