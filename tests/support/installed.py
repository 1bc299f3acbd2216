"""An example plugin as an installed package has it: metadata made from its pyproject, its folder on the path."""

import sys
import tomllib
from pathlib import Path

import pytest


def install(project: Path, where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this interpreter find a project's entry points until the test has ended.

    Args:
        project: Folder with its `pyproject.toml` and its modules.
        where: An empty folder for the metadata.
        monkeypatch: Undoes it.
    """
    about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = where / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    )
    lines = []
    for group, entries in about["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(where))
    monkeypatch.syspath_prepend(str(project))
    for module in project.glob("*.py"):
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
