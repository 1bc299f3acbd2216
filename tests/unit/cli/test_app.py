"""The command as a whole: exit codes, one clear line for a mistake, quick to start."""

import ast
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import pumice as package
from pumice.cli import app, exits, main
from tests.kit.counting import calls
from tests.unit.cli.conftest import Pumice

VERBS = [
    "lint",
    "review",
    "render",
    "simulate",
    "dev",
    "explain",
    "plugins",
    "rules",
    "webhook",
    "controller",
    "scheduler",
    "certs",
]


def test_help_lists_every_verb(pumice: Pumice) -> None:
    ran = pumice("--help")
    assert ran.code == 0
    listed = [
        line.split()[0]
        for line in ran.out.partition("Commands:")[2].splitlines()
        if line[:3] == "  " + line[2:3] and line[2:3].isalpha()
    ]
    assert listed == VERBS
    assert "..." not in ran.out.partition("Commands:")[2]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(pumice: Pumice, verb: str) -> None:
    ran = pumice(verb, "--help")
    assert ran.code == 0
    assert f"Usage: pumice {verb}" in ran.out
    assert f"pumice {verb}" in ran.out.partition("Examples:")[2]


def test_version(pumice: Pumice) -> None:
    ran = pumice("--version")
    assert (ran.code, ran.out) == (0, f"pumice {package.__version__}\n")


@pytest.mark.usefixtures("freezing_again")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "pumice: Missing command. (see `pumice --help`)"),
        (["lnt"], "Did you mean 'lint'?"),
        (["lint"], "pumice lint: Missing argument 'FILE'."),
        (["lint", "x", "--no-such"], "No such option: --no-such"),
        (["lint", "x", "-o", "xml"], "'xml' is not one of 'text', 'json'"),
        (["lint", "no-such-file.yaml"], "no-such-file.yaml: no such file"),
        (["lint", "/proc/self/fdinfo"], "holds no manifests, expected files *.yaml, *.yml, *.json"),
        (["lint", "-", "--admission-conf", "."], "is a directory"),
        (["lint", "-", "-"], "only once"),
        (["lint", "-", "--state", "-"], "only once"),
        (["lint", "-"], "stdin: is empty"),
        (["lint", "-", "--set", "nonsense"], "expected NAME=VALUE"),
        (["lint", "-", "--set", "no-such=1"], "no-such: unknown key"),
        (["lint", "-", "--set", "max-queue-depth=x"], "--set: max-queue-depth: must be an integer"),
        (["lint", "-", "--set", "rule.JOB-DUP=off"], 'there is no rule "JOB-DUP" (did you mean'),
        (
            ["lint", "-", "--set", "rule.JOB-NAME=on"],
            "rules.JOB-NAME: must be enforce, warn or off",
        ),
        (["rules", "JOB-DUPTASK"], "no rule 'JOB-DUPTASK' (did you mean \"JOB-DUP-TASK\"?)"),
        (["lint", "-", "--admission-conf", "no-such.yaml"], "no-such.yaml: no such file"),
        (["review", "/nowhere"], "/nowhere: there is no such path, known are /jobs/mutate"),
        (["review", "/jobs/mutate"], "stdin is empty"),
        (["review", "/jobs/mutate", "--state", "-"], "stdin holds the review"),
        (["render", "-"], "stdin: is empty"),
        (["simulate"], "Missing option '--state'"),
        (["simulate", "--state", "-", "--cycles", "0"], "--cycles"),
        (["simulate", "--state", "-", "--at", "noon"], "--at 'noon': expected a time"),
        (["simulate", "--state", "-", "--at", "nan"], "--at 'nan': expected a time"),
        (["simulate", "--state", "-", "--at", "1e15"], "--at '1e15': expected a time"),
        (["simulate", "--state", "-", "--config", "no-such.conf"], "no-such.conf: no such file"),
        (
            ["explain", "node/x"],
            "'node/x': expected job/NAME, queue/NAME, pod/NAME, jobflow/NAME or cronjob/NAME",
        ),
        (["explain", "job/"], "expected job/NAME"),
        (["explain", "queue", "a", "b"], "'queue a b': expected job/NAME"),
        (["explain", "job/x", "-A"], "leave out job/x"),
        (["explain", "-A", "-n", "x"], "leave out --namespace"),
        (["explain", "job/x", "--kubeconfig", "no-such"], "kubeconfig no-such"),
        (["explain", "job/x", "--master", "http://127.0.0.1:1"], "127.0.0.1"),
        (["dev", "--nodes", "many"], "--nodes: 'many' is no node"),
        (["dev", "--run-delay", "soon"], "--run-delay 'soon': expected a duration"),
        (["dev", "--port", "99999"], "--port"),
        (["scheduler", "--schedule-period", "never"], "--schedule-period 'never'"),
        (["scheduler", "--kubeconfig", "no-such"], "kubeconfig no-such"),
        (["controller", "--kubeconfig", "no-such"], "kubeconfig no-such"),
        (["certs", "--kubeconfig", "no-such"], "kubeconfig no-such"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    pumice: Pumice, arguments: list[str], line: str
) -> None:
    ran = pumice(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    told = [each for each in ran.err.splitlines() if each.startswith("pumice")]
    assert len(told) == 1
    assert line in told[0]
    assert "Traceback" not in ran.err


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", interrupted)
    assert main(["lint", "x"]) == exits.INTERRUPTED


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pumice", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_that_went_away_is_no_failure_of_ours(tmp_path: Path) -> None:
    pods = "\n---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec: {{containers: []}}"
        for n in range(3000)
    )
    file = tmp_path / "pods.yaml"
    file.write_text(pods)
    command = f"{sys.executable} -m pumice lint {shlex.quote(str(file))} -o json | head -c 10"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ran.stdout == "[\n  {\n    "
    assert "Traceback" not in ran.stderr
    assert "Exception" not in ran.stderr


def test_a_full_disk_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "pumice", "rules"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 2
    assert ran.stderr == b"pumice: cannot write: No space left on device\n"


def test_what_a_terminal_cannot_show_is_written_in_other_signs() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "lint", "examples/mistakes/dependencies.yaml"],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, b"")
    assert rb"prepare \u2192 train \u2192 prepare" in ran.stdout


HELPING = """
import sys
before = {*sys.modules, *sys.stdlib_module_names}
from tests.kit.counting import calls
from pumice.cli import main
count = calls(lambda: main(["--help"]))
print((count, sorted(name for name in sys.modules if name.partition(".")[0] not in before)))
"""

NEEDED = {"annotated_doc", "msgspec", "shellingham", "typer", "typing_extensions"}
"""Packages of others without which there is no help; NumPy, aiohttp, PyYAML and the like are for verbs."""


def test_help_is_there_at_once() -> None:
    """Nothing is timed: what is imported for it is looked at, and calls are counted."""
    ran = subprocess.run(
        [sys.executable, "-c", HELPING],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    count, imported = ast.literal_eval(ran.stdout.splitlines()[-1])
    assert {name.partition(".")[0] for name in imported} <= NEEDED | {"pumice", "tests"}
    rooms = {".".join(name.split(".")[:2]) for name in imported if name.startswith("pumice.")}
    assert rooms == {"pumice.api", "pumice.cli"}
    assert count < 200_000  # 127,000 were counted


def test_the_installed_command_is_the_same() -> None:
    script = Path(sys.executable).with_name("pumice")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == run("--version").stdout


def test_time_is_not_spent_before_the_verb() -> None:
    main(["--version"])  # and everything is imported
    assert calls(lambda: main(["--version"])) < 50_000  # 25,000 were counted
