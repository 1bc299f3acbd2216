"""The command as a whole: exit codes, one clear line for a mistake, quick to start."""

import re
import sys

import pytest
import typer

import pumice as package
from pumice.cli import app, exits, job, kubectl_plugin, main, migrate, queue, trace
from tests.kit.builders import job as job_object
from tests.kit.counting import calls
from tests.unit.cli.conftest import EXAMPLES, Pumice, texts

VERBS = [
    "lint",
    "review",
    "render",
    "simulate",
    "trace",
    "run",
    "dev",
    "explain",
    "web",
    "migrate",
    "job",
    "queue",
    "plugins",
    "rules",
    "schema",
    "completion",
    "webhook",
    "controller",
    "scheduler",
    "certs",
]


def test_an_interrupt_while_modules_are_imported_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "pumice.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "pumice.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    assert main(["rules"]) == 130
    assert capsys.readouterr() == ("", "")


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


JOB_FILE = str(EXAMPLES / "tensorflow.yaml")
OF_GROUPS = [
    f"{group.__name__.rpartition('.')[2]} {each}"
    for group in (job, migrate, queue, trace)
    for each in group.VERBS
]


@pytest.mark.parametrize("verb", [*VERBS, *OF_GROUPS])
def test_every_verb_has_help_with_examples(pumice: Pumice, verb: str) -> None:
    ran = pumice(*verb.split(), "--help")
    assert ran.code == 0
    assert f"Usage: pumice {verb}" in ran.out
    assert f"pumice {verb}" in ran.out.partition("Examples:")[2]
    assert "..." not in ran.out.partition("Commands:")[2]


@pytest.mark.parametrize("group", ["", "job", "queue", "migrate"])
def test_a_group_alone_shows_its_help_and_has_not_done_anything(pumice: Pumice, group: str) -> None:
    alone, wanted = pumice(*group.split()), pumice(*group.split(), "--help")
    assert (alone.code, alone.out, alone.err) == (2, "", wanted.out)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("lint", "FILE..."),
        ("job suspend", "NAME..."),
        ("job get", "NAME"),
        ("rules", "[CODE|WORD]"),
        ("completion", "bash|zsh|fish"),
        ("explain", "[job|queue|pod|jobflow|cronjob|hypernode NAME]"),
    ],
)
def test_the_usage_says_how_many_arguments_there_are(
    pumice: Pumice, verb: str, arguments: str
) -> None:
    usage = pumice(*verb.split(), "--help").out.partition("\n\n")[0]
    assert usage == f"Usage: pumice {verb} [OPTIONS] {arguments}"


def test_as_a_plugin_of_kubectl_it_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_plugin(["job", "suspend", "--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Usage: kubectl pumice job suspend [OPTIONS]")
    assert "    kubectl pumice job suspend mnist\n" in told
    assert kubectl_plugin(["queue", "close"]) == 2
    assert capsys.readouterr().err == (
        "kubectl pumice queue close: Missing argument 'NAME'. (see `kubectl pumice queue close --help`)\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pumice jo", ["job"]),
        ("pumice job s", ["suspend"]),
        ("pumice job list --sel", ["--selector"]),
        ("pumice queue list -o ", ["text", "wide", "json", "yaml", "name"]),
        ("pumice completion ", ["bash", "zsh", "fish"]),
        ("pumice lint --quiet=no --skip-o", ["--skip-others"]),
        ("pumice migrate check --outp", ["--output"]),
        ("pumice rules JOB-DUP", ["JOB-DUP-TASK"]),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_verbs_options_and_values(
    pumice: Pumice,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    shell: str,
    line: str,
    expected: list[str],
) -> None:
    script = pumice("completion", shell).out
    assert f"{app.COMPLETION_VARIABLE}=complete_{shell}" in script
    monkeypatch.setenv(app.COMPLETION_VARIABLE, f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code
    told = capsys.readouterr().out
    found = re.findall(r'"([^"]+)"(?::"|$|\)|\n)', told) if shell == "zsh" else told.splitlines()
    assert [each.split("\t")[0] for each in found] == expected


@pytest.mark.parametrize("verb", ["", *(f"{each} --" for each in [*VERBS, *OF_GROUPS])])
def test_each_completion_is_a_line_with_its_first_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Also on a narrow terminal, and where the help has brackets."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", f"pumice {verb}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    told = {}
    for shell in ("fish", "zsh"):
        monkeypatch.setenv(app.COMPLETION_VARIABLE, f"complete_{shell}")
        with pytest.raises(SystemExit):
            main([])
        told[shell] = capsys.readouterr().out
    rows = [line.split("\t") for line in told["fish"].splitlines()]
    assert {len(row) for row in rows} == {2}
    assert not [said for _, said in rows if re.search(r"[.;] |[.]$", said)]
    assert len(told["zsh"].splitlines()) == len(rows)
    if verb == "dev --":
        nodes = "Nodes: [COUNTx]CPU[/MEMORY][/RESOURCE=AMOUNT], several with commas"
        assert ["--nodes", nodes] in rows
    if not verb:
        assert ["lint", "Validate manifests offline and report every problem"] in rows


def test_version(pumice: Pumice) -> None:
    ran = pumice("--version")
    assert (ran.code, ran.out) == (0, f"pumice {package.__version__}\n")


@pytest.mark.usefixtures("freezing_again")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--"], "pumice: Missing command. (see `pumice --help`)"),
        (["lnt"], "Did you mean 'lint'?"),
        (
            ["lint"],
            "pumice lint: Missing argument 'FILE'; - reads stdin (see `pumice lint --help`)",
        ),
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
        (["review", __file__], "/hypernodes/validate; `pumice lint FILE` validates manifests"),
        (["review", "/jobs/mutate"], "stdin is empty"),
        (["review", "/jobs/mutate", "--state", "-"], "stdin holds the review"),
        (["render", "-"], "stdin: is empty"),
        (["simulate"], "Missing option '--state'; write `pumice simulate --state FILE`, or"),
        (["simulate", "train.yaml"], "use `--state FILE` for a file (see"),
        (
            ["simulate", "--state", "-", "--cycles", "0"],
            "0: expected a whole number of at least 1 (",
        ),
        (["simulate", "--state", "-", "--at", "noon"], "--at 'noon': expected a time"),
        (["simulate", "--state", "-", "--at", "nan"], "--at 'nan': expected a time"),
        (["simulate", "--state", "-", "--at", "1e15"], "--at '1e15': expected a time"),
        (["simulate", "--state", "-", "--config", "no-such.conf"], "no-such.conf: no such file"),
        (
            ["explain", "node/x"],
            "'node/x': expected job/NAME, queue/NAME, pod/NAME, jobflow/NAME, cronjob/NAME, hypernode/NAME or hypernodes",
        ),
        (["explain", "job/"], "expected job/NAME"),
        (["explain", "pg/x"], "or hypernodes; a PodGroup is explained with its Job, or with one"),
        (["explain", "job/x", "--state", "-"], "--state is for hypernodes; `pumice simulate"),
        (["explain", "hn", "--state", "-", "--watch"], "--watch follows a cluster; leave it out"),
        (["explain", "hypernodes", "-A"], "leave out hypernode"),
        (
            ["explain", "deploy/x"],
            "or hypernodes; of what others own, one of the pods is explained",
        ),
        (["explain", "statefulset", "x"], "; of what others own, one of the pods is explained"),
        (["explain", "queue", "a", "b"], "'queue a b': expected job/NAME"),
        (["explain", "job/x", "-A"], "leave out job/x"),
        (["explain", "-A", "-n", "x"], "leave out --namespace"),
        (["explain", "job/x", "--kubeconfig", "no-such"], "kubeconfig no-such"),
        *(
            (["explain", f"{each}/x", "--kubeconfig", "no-such"], "kubeconfig no-such")
            for each in (  # as `kubectl get -o name` prints them
                "job.batch.volcano.sh",
                "queue.scheduling.volcano.sh",
                "jobflow.flow.volcano.sh",
                "cronjob.batch.volcano.sh",
                "cj",
            )
        ),
        (
            ["explain", "job/x", "--master", "http://127.0.0.1:1"],
            "pumice explain: cannot reach http://127.0.0.1:1: connection refused; is the cluster running? Otherwise",
        ),
        (["job", "list", "--master", "ftp://x"], "job list: cannot reach ftp://x: invalid address"),
        (
            ["queue", "list", "--context", "a", "--master", "http://x"],
            "context 'a' is looked for in",
        ),
        (["job", "lst"], "pumice job: No such command 'lst'. Did you mean 'list'?"),
        (["version"], "pumice: No such command 'version'; use `pumice --version`"),
        (["job", "delete", "a"], "No such command 'delete'; use `kubectl delete vcjob NAME`"),
        (["logs", "a"], "No such command 'logs'; use `pumice job logs NAME`"),
        (["job", "scale", "a"], "use `kubectl edit vcjob NAME`, and change `replicas` of a task"),
        (["submit", "a"], "No such command 'submit'; use `kubectl apply -f FILE`"),
        (["validate", "a"], "No such command 'validate'; use `pumice lint FILE…`"),
        (["schedule", "a"], "No such command 'schedule'; use `pumice simulate --state FILE…`"),
        (["pods"], "No such command 'pods'; use `kubectl get pods`"),
        (["podgroup", "list"], "No such command 'podgroup'; use `kubectl get podgroups`"),
        (
            ["cancel", "a"],
            "'cancel'; use `pumice job suspend NAME`, or `kubectl delete vcjob NAME`",
        ),
        (["up"], "No such command 'up'; use `pumice dev --detach`"),
        (["job", "help"], "'help'; use `pumice job --help`, or `pumice job COMMAND --help`"),
        (["job", "restart", "a"], "use `pumice job suspend NAME` and `pumice job resume NAME`"),
        (["job", "explain", "a"], "No such command 'explain'; use `pumice explain job/NAME`"),
        (["queue", "suspend", "a"], "No such command 'suspend'; use `pumice queue close NAME`"),
        (["dev", "logs"], "'logs'; use `pumice dev status`, which names the file of each"),
        (["simulate", "-f", "a"], "No such option: -f; use `--state FILE` for a file"),
        (["dev", "list"], "No such command 'list'; use `pumice dev status`"),
        (["migrate", "check", "a.yaml"], "(a.yaml); use `--state FILE` for a file"),
        (["job", "list", "-N", "a"], "use `pumice job get NAME` for one Job, or `-n` for a namesp"),
        (["job", "logs", "a", "-c", "b"], "-c; use `kubectl logs POD -c NAME` for one container"),
        (["job", "list", "-q", "a"], "No such option: -q; use `pumice explain queue/NAME`"),
        (["job", "suspend", "-N", "a"], "-N; use the name without an option: `pumice job suspend"),
        (["queue", "operate"], "'operate'; use `pumice queue close NAME` or `pumice queue open"),
        (["--context", "x", "job"], "No such option: --context; use it behind the command, as in"),
        (["queue", "list", "-A"], "No such option: -A; use `pumice queue list`, since queues are"),
        (
            ["job", "suspend", "--all"],
            "use `pumice job list -o name -l LABELS | xargs pumice job s",
        ),
        (["lint", "-f", "x"], "No such option: -f; use files without an option: `pumice lint"),
        (
            ["lint", "x", "--quiet=no"],
            "--quiet: invalid boolean value 'no', expected true or false",
        ),
        (["dev", "--nodes", "many"], "--nodes 'many': 'many' is no amount"),
        (["dev", "--nodes", "0"], "--nodes '0': a node without CPUs runs no pod"),
        (["dev", "--nodes", "2,3x0"], "--nodes '2,3x0': a node without CPUs runs no pod"),
        (["dev", "start"], "pumice dev: No such command 'start'; use `pumice dev --detach` (see"),
        (["dev", "stop", "now"], "(now); use `--kubeconfig FILE` for one of several"),
        (
            ["dev", "--config", JOB_FILE],
            "is a Job; expected actions and tiers, or a ConfigMap",
        ),
        (["job", "list", "a"], "(a); use `pumice job get NAME` for one Job"),
        (["queue", "list", "a"], "(a); use `pumice explain queue/NAME`"),
        (["job", "logs", "a", "--previous"], "No such option: --previous; use `--failed`, for the"),
        (["job", "logs", "a", "--tail", "9"], "No such option: --tail; use `--since TIME`, or"),
        (["dev", "--nodes", "2", "stop"], "--nodes=2 stands before 'stop', expected behind it"),
        (["dev", "--run-delay", "soon"], "--run-delay 'soon': expected a duration"),
        (["dev", "--port", "99999"], "'--port': 99999: expected a whole number from 0 to 65535"),
        (["explain", "x", "--logs", "y"], "'--logs': y: expected a whole number from 0 to 1000"),
        (["explain", "x", "--logs", "-1"], "'--logs': -1: expected a whole number from 0 to 1000"),
        (["webhook", "--drain-seconds", "soon"], "soon: expected a number of seconds (see"),
        (["scheduler", "--schedule-period", "never"], "--schedule-period 'never'"),
        (["scheduler", "--cycle-budget", "no"], "--cycle-budget 'no'"),
        (
            ["scheduler", "--cycle-budget", "20s", "--stall-timeout", "80s"],
            "--stall-timeout: must be more than 80 s",
        ),
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


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--leader-elect=true", True),
        ("--leader-elect=false", False),
        ("--no-leader-elect=true", False),
        ("--no-leader-elect=False", True),
        ("--leader-elect=false --leader-elect=1", True),
        ("--leader-elect=t --leader-elect=0", False),
        ("--leader-elect", True),
        ("--no-leader-elect", False),
    ],
)
def test_boolean_flags_may_have_a_value_as_in_go(flag: str, expected: bool) -> None:
    group = typer.main.get_group(app.app)
    context = group.commands["controller"].make_context("controller", flag.split())
    assert context.params["leader_elect"] is expected


@pytest.mark.parametrize(
    ("flags", "code"),
    [("--strict", 1), ("--strict=true", 1), ("--strict=false", 0), ("--strict --strict=false", 0)],
)
def test_a_flag_without_negative_form_is_removed_by_false(
    pumice: Pumice, flags: str, code: int
) -> None:
    warned = texts(job_object(queue="research"))
    assert pumice("lint", "-", *flags.split(), stdin=warned).code == code


def test_options_that_typer_checks_with_pydantic_are_refused_in_its_own_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise typer.BadParameter("Value error, 'xml' is not one of 'text', 'json'", param_hint="-o")

    monkeypatch.setattr(app, "app", refused)
    assert main(["lint", "x"]) == 2
    told = capsys.readouterr().err
    assert told == "pumice lint: Invalid value for -o: 'xml' is not one of 'text', 'json'\n"


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", interrupted)
    assert main(["lint", "x"]) == exits.INTERRUPTED


def test_time_is_not_spent_before_the_verb() -> None:
    main(["--version"])  # and everything is imported
    assert calls(lambda: main(["--version"])) < 50_000  # 25,000 were counted
