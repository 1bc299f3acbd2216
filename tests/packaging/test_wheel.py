"""What users install: the package, its command, its types, and nothing of the workshop."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import pumice

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as the image's first stage builds it."""
    uv = shutil.which("uv") or str(ROOT / ".pumice/uv/bin/uv")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [uv, "build", "--wheel", "--out-dir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def metadata(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"pumice-{pumice.__version__}.dist-info/{name}").decode()


def test_it_holds_every_module_once_and_nothing_else(wheel: Path) -> None:
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "pumice").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    held = {name for name in names(wheel) if ".dist-info/" not in name}
    assert held == sources
    assert "pumice/py.typed" in held


def test_it_brings_the_command_and_the_licence(wheel: Path) -> None:
    entry_points = configparser.ConfigParser()
    entry_points.read_string(metadata(wheel, "entry_points.txt"))
    assert dict(entry_points["console_scripts"]) == {
        "pumice": "pumice.cli:main",
        "kubectl-pumice": "pumice.cli:kubectl_plugin",
    }
    assert "Apache License" in metadata(wheel, "licenses/LICENSE")


def test_it_says_what_it_needs(wheel: Path) -> None:
    headers = HeaderParser().parsestr(metadata(wheel, "METADATA"))
    assert headers["Version"] == pumice.__version__
    assert headers["Requires-Python"] == ">=3.11"
    requires = headers.get_all("Requires-Dist") or []
    needed = {each.partition(">")[0] for each in requires if "extra ==" not in each}
    assert {"aiohttp", "msgspec", "numpy"} <= needed
    assert not {"pytest", "mypy", "ruff", "hypothesis", "kubernetes"} & needed


def test_it_works_by_itself(wheel: Path, tmp_path: Path) -> None:
    """Run the command from inside the wheel, away from the source tree."""
    where = "import pumice.cli; print(pumice.cli.__file__)"
    for arguments, said in (
        (["-c", where], str(wheel)),
        (["-m", "pumice", "--version"], f"pumice {pumice.__version__}"),
    ):
        answer = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(wheel)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        assert said in answer.stdout
