"""`pumice plugins check`: a plugin that keeps the contract passes, each that breaks it is told how."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.unit.cli.conftest import Pumice
from tests.unit.testing.broken_plugins import BROKEN, HEAD

EXAMPLE = Path(__file__).parents[3] / "examples/job-plugin/pumice_jax.py"


def written(folder: Path, body: str) -> Path:
    """A plugin of its own file."""
    file = folder / "mine.py"
    file.write_text(f"{HEAD}{indent(dedent(body), '    ')}\n")
    return file


def test_the_smallest_example_is_shown(pumice: Pumice, tmp_path: Path) -> None:
    body, _, _ = BROKEN["refers to another's variable"]

    ran = pumice("plugins", "check", written(tmp_path, body))

    assert ran.code == 1
    assert "failed  dependencies  what it leans on is required\n          LOG refers to" in ran.out
    smallest = """
        spec:
          plugins:
            mine: []
          tasks:
          - name: worker
            replicas: 1
            template:
              spec:
                containers:
                - name: main
    """
    assert indent(dedent(smallest).strip(), " " * 12) in ran.out


def test_the_example_keeps_the_contract(pumice: Pumice) -> None:
    ran = pumice("plugins", "check", EXAMPLE)

    assert (ran.code, ran.err) == (0, "")
    first, *sentences = ran.out.splitlines()
    assert first == f"jax of {EXAMPLE}"
    assert [each.split()[:2] for each in sentences] == [
        ["ok", name]
        for name in (
            "declared",
            "answers",
            "pure",
            "edits",
            "objects",
            "dependencies",
        )
    ]


def test_all_plugins_of_a_module_are_checked(pumice: Pumice, tmp_path: Path) -> None:
    file = written(tmp_path, "")
    file.write_text(f'{file.read_text()}\n\nclass Other(Mine):\n    name = "other"\n')

    ran = pumice("plugins", "check", file, "--examples", "5", "-o", "json")
    one = pumice("plugins", "check", f"{file}:Other", "--examples", "5", "-o", "json")

    assert [(each["plugin"], each["passed"]) for each in ran.json] == [
        ("mine", True),
        ("other", True),
    ]
    assert [each["plugin"] for each in one.json] == ["other"]


def test_a_name_that_is_taken_breaks_it(pumice: Pumice, tmp_path: Path) -> None:
    ran = pumice("plugins", "check", written(tmp_path, 'name = "svc"'))
    assert ran.code == 1
    assert "the name is taken by the plugin of pumice" in ran.out


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ((), "check which plugin?"),
        (("no_such_module",), "no_such_module cannot be imported: ModuleNotFoundError"),
        (("no-such.py",), "no-such.py: no such file"),
        (("examples/mpi.yaml",), "expected a Python file that ends in .py, or a module"),
        (("{file}:Mein",), "has no 'Mein' (did you mean \"Mine\"?)"),
        (("{empty}",), "defines no subclass of pumice.plugins.JobPlugin"),
        (("{raises}",), "cannot be imported: ZeroDivisionError"),
    ],
)
def test_what_is_no_plugin_is_one_clear_line(
    pumice: Pumice, tmp_path: Path, reference: tuple[str, ...], line: str
) -> None:
    empty, raises = tmp_path / "empty.py", tmp_path / "raises.py"
    empty.write_text("")
    raises.write_text("1 / 0\n")
    file = written(tmp_path, "")
    named = [each.format(file=file, empty=empty, raises=raises) for each in reference]

    ran = pumice("plugins", "check", *named)

    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        ("sys", "{python} -m pip install hypothesis"),
        ("None", "uv pip install -p {python} hypothesis"),
    ],
    ids=["where there is pip", "after uv tool install"],
)
def test_without_hypothesis_it_says_which_command_installs_it(pip: str, command: str) -> None:
    code = (
        f"import sys; sys.modules |= {{'hypothesis': None, 'pip': {pip}}}; from pumice.cli import main; "
        f"sys.exit(main(['plugins', 'check', {str(EXAMPLE)!r}]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        "pumice plugins: check needs hypothesis, which is not installed beside Pumice: "
        + command.format(python=sys.executable)
    ]


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "plugins", "check", EXAMPLE, "--examples", "5"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []
