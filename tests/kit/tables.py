"""Case tables, which are data under `tests/cases`, and other YAML, read fast."""

import functools
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parents[1] / "cases"
LOADER = yaml.CSafeLoader
"""Reads ten times faster than the one in Python."""


def table(name: str) -> Any:
    """What `tests/cases/<name>.yaml` holds, a copy for each caller.

    Raises:
        ValueError: Two rows of a list have one id.
    """
    return pickle.loads(_pickled(name))


@functools.cache
def _pickled(name: str) -> bytes:
    found = yaml.load((CASES / f"{name}.yaml").read_text(encoding="utf-8"), Loader=LOADER)
    for rows in found.values() if isinstance(found, dict) else [found]:
        if isinstance(rows, list):
            ids = Counter(str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row)
            if twice := [each for each, count in ids.items() if count > 1]:
                raise ValueError(
                    f"tests/cases/{name}.yaml: two rows have the id {', '.join(twice)}"
                )
    return pickle.dumps(found)


def documents(text: str) -> list[Any]:
    """The documents of a text that are not empty."""
    return [each for each in yaml.load_all(text, Loader=LOADER) if each]
