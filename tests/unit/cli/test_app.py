"""The command as a whole: exit codes, one clear line for a mistake, quick to start."""


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
        (["lint", "-", "--set", "no-such=1"], "there is no setting 'no-such'"),
        (["lint", "-", "--set", "max-queue-depth=x"], "setting max-queue-depth"),
        (["lint", "-", "--set", "rule.JOB-DUP=off"], "there is no rule 'JOB-DUP' (did you mean"),
        (
            ["lint", "-", "--set", "rule.JOB-NAME=on"],
            "rule JOB-NAME: expected enforce, warn or off",
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


def test_time_is_not_spent_before_the_verb() -> None:
    main(["--version"])  # and everything is imported
    assert calls(lambda: main(["--version"])) < 50_000  # 25,000 were counted
