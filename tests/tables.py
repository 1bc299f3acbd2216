"""Case tables, which are data under `tests/cases`, and other YAML, read fast."""

import functools
import pickle
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parent / "cases"
LOADER = yaml.CSafeLoader
"""Reads ten times faster than the one in Python."""


def table(name: str) -> Any:
    """What `tests/cases/<name>.yaml` holds, a copy for each caller."""
    return pickle.loads(_pickled(name))


@functools.cache
def _pickled(name: str) -> bytes:
    found = yaml.load((CASES / f"{name}.yaml").read_text(encoding="utf-8"), Loader=LOADER)
    return pickle.dumps(found)


def documents(text: str) -> list[Any]:
    """The documents of a text that are not empty."""
    return [each for each in yaml.load_all(text, Loader=LOADER) if each]
