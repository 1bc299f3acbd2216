"""`pumice simulate --trace` and `pumice trace generate`: what users type, and what they get."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.simulation import trace_run
from pumice.cli.simulation.trace_run import _ProgressLine, progress_text
from pumice.traces.records import Progress
from tests.kit.builders import job, node, queue, task
from tests.kit.faulty import Fault, faulty_config
from tests.unit.cli.conftest import Pumice, texts
from tests.unit.traces.test_evalys import swf

LINES = [
    {"name": "a", "submit": 0, "duration": 10, "replicas": 2, "requests": {"cpu": 1}},
    {"name": "b", "submit": 1, "duration": 5, "requests": {"cpu": 2}, "user": "ann"},
    {"name": "c", "submit": 2, "duration": 0, "requests": {"cpu": 1}},
    {"name": "hopeless", "submit": 3, "duration": 1, "requests": {"cpu": 9}},
    {"name": "endless", "submit": 30, "requests": {"cpu": 1}},
]
TRACE = "\n".join(json.dumps(each) for each in LINES)


def test_the_json(pumice: Pumice) -> None:
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x2cpu", "-o", "json", stdin=TRACE)
    assert (ran.code, ran.err) == (0, "")
    jobs = {each["name"]: each for each in ran.json["jobs"]}
    times = {name: (each["start"], each["end"]) for name, each in jobs.items()}
    assert times == {
        "a": (0, 10),
        "b": (10, 15),
        "c": (15, 15),
        "hopeless": (None, None),
        "endless": (30, None),
    }
    b = {
        "submit": 1.0, "start": 10.0, "end": 15.0, "wait": 9.0, "run": 5.0, "turnaround": 14.0,
        "slowdown": 2.8, "bounded_slowdown": 1.4, "evictions": 0, "nodes": ["node-1"], "queue": "default",
    }  # fmt: skip
    assert b.items() <= jobs["b"].items()
    summary = ran.json["summary"]
    assert {"utilization", "wait", "turnaround", "bounded_slowdown", "jain", "cost"} <= set(summary)
    assert (summary["makespan"], summary["evictions"], summary["skipped"]) == (15.0, 0, 0)
    backwards = "\n".join(reversed(TRACE.split("\n")))
    again = pumice("simulate", "--trace", "-", "--nodes", "1x2cpu", "-o", "json", stdin=backwards)
    for each in (ran.json, again.json):
        del each["summary"]["cost"]
    assert ran.json["jobs"] == again.json["jobs"]
    assert summary.keys() == again.json["summary"].keys()


def test_the_text_names_what_became_of_the_jobs(pumice: Pumice) -> None:
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x2cpu", stdin=TRACE)
    assert ran.code == 0
    assert "3 completed" in ran.out
    assert "1 waiting" in ran.out
    assert "1 running" in ran.out
    assert (
        "NOT STARTED       QUEUE    WHY\ndefault/hopeless  default  needs 9 cpu on one node; the"
        in ran.out
    )


def test_what_nodes_have_without_limit_is_not_measured(pumice: Pumice) -> None:
    line = {"submit": 0, "duration": 5, "requests": {"cpu": 1, "gpu": 1, "memory": "1Gi"}}
    runs = ("--nodes", "1x2gpu", "--compare-nodes", "1x2gpu,4cpu")
    ran = pumice("simulate", "--trace", "-", *runs, "-o", "json", stdin=texts(line))
    base, other = (ran.json[run]["summary"] for run in ("base", "other"))
    for name in ("utilization", "fragmentation", "goodput", "lost_hours"):
        assert [*base[name]] == ["nvidia.com/gpu"]
        assert [*other[name]] == ["cpu", "nvidia.com/gpu"]
    assert ran.json["differences"]["summary"]["utilization"] == {"nvidia.com/gpu": 0, "cpu": None}


def test_a_priority_class_that_is_not_given_is_named(pumice: Pumice, tmp_path: Path) -> None:
    lines = [
        {"submit": 0, "duration": 1, "priority": name}
        for name in ("high", "low", "system-node-critical", 7)
    ]
    state = tmp_path / "state.yaml"
    known = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 5}
    state.write_text(texts(known | {"metadata": {"name": "high"}}))
    ran = pumice(
        "simulate", "--trace", "-", "--nodes", "1x2cpu", "--state", state, stdin=texts(*lines)
    )
    assert ran.err == "-: PriorityClass low is not given, and counts as 0: add it to --state\n"


def test_a_node_of_a_past_that_cannot_be_read_is_named(pumice: Pumice) -> None:
    past = job("a", annotations={"pumice.dev/duration": "5s"})
    past["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    items = [past, node("n1", "many")]
    ran = pumice("simulate", "--trace", "-", stdin=json.dumps({"items": items}))
    assert (ran.code, ran.out) == (2, "")
    said = (
        "pumice simulate: an object of the cluster cannot be read: Node/n1: quantities must match"
    )
    assert ran.err.startswith(said)


@pytest.mark.parametrize(
    ("point", "compared", "said"),
    [
        ("job_valid", (), "the scheduler failed at gang default/a: ZeroDivisionError: fault at job_valid (faulty.py, line "),
        ("overused", ("--compare-nodes", "1x9cpu"), "a cycle of the scheduler failed: ZeroDivisionError: fault at overused (faulty.py, line "),
    ],
)  # fmt: skip
def test_a_plugin_of_the_scheduler_that_raises_is_a_sentence(
    pumice: Pumice,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    compared: tuple[str, ...],
    said: str,
) -> None:
    """With exit code 2: 1 says that a threshold is not kept. The gang is named as the Job that makes it."""
    gang = "a-00000000-0000-0000-0000-000000000000"
    monkeypatch.setattr(trace_run, "read_config", lambda _: faulty_config(Fault(point, gang)))
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x2cpu", *compared, stdin=TRACE)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"pumice simulate: {said}")
    assert ran.err.count("\n") == 1


def test_jobs_that_are_refused_are_named_with_the_reason(pumice: Pumice) -> None:
    lines = [{"submit": 0, "name": f"j{n}", "requests": {"x": "1"}} for n in range(6)]
    for compared in ((), ("--compare-nodes", "1x1cpu")):
        ran = pumice(
            "simulate", "--trace", "-", "--nodes", "1x2cpu", *compared, stdin=texts(*lines)
        )
        assert ran.code == 0
        assert [line.split()[0] for line in ran.out.split("NOT STARTED")[1].split("\n")[1:7]] == [
            *(f"default/j{n}" for n in range(5)),
            "1",
        ]
        assert '"x" must be a standard resource' in ran.out


def test_all_jobs_in_one_queue_on_the_nodes_of_the_state(pumice: Pumice, tmp_path: Path) -> None:
    """With a manifest, too; a Job of --state is left out, and one of a queue that is not there is refused."""
    manifest = {"spec": {"queue": "other", "tasks": [_task("1")]}}
    lines = [{"submit": 0, "duration": 4, "name": "m", "manifest": manifest}, LINES[0]]
    state = tmp_path / "state.yaml"
    state.write_text(texts(node("n1", "4"), queue("one"), job("ignored", [])))
    stdin = texts(*lines)
    ran = pumice(
        "simulate", "--trace", "-", "--state", state, "--queue", "one", "-o", "json", stdin=stdin
    )
    assert ran.code == 0
    assert [(each["queue"], each["nodes"]) for each in ran.json["jobs"]] == [("one", ["n1"])] * 2
    assert ran.err == "left out 1 Job of --state: only those of the trace are submitted\n"
    ran = pumice("simulate", "--trace", "-", "--state", state, "-o", "json", stdin=stdin)
    assert [each["outcome"] for each in ran.json["jobs"]] == ["Completed", "Refused"]
    assert "other" in ran.json["jobs"][1]["reason"]


def _task(cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}


def test_a_real_trace(pumice: Pumice) -> None:
    """All jobs of a file of evalys end after their duration, and no processor is used twice."""
    path = swf("easy_mediumWL_smallPF")
    ran = pumice("simulate", "--trace", path, "--nodes", "32x1cpu", "-o", "json")
    assert (ran.code, ran.json["summary"]["jobs"]["completed"]) == (0, 800)
    fields = {line.split()[0]: line.split() for line in path.read_text().splitlines()}
    changes = []
    for each in ran.json["jobs"]:
        line = fields[each["name"]]
        assert each["submit"] == float(line[1]) <= each["start"]
        assert each["end"] == pytest.approx(each["start"] + float(line[3]), abs=1e-9)
        assert len(each["nodes"]) == int(line[4])
        changes += [(each["start"], 1, int(line[4])), (each["end"], 0, -int(line[4]))]
    used = peak = 0
    for _, _, count in sorted(changes):
        used += count
        peak = max(peak, used)
    assert peak == 32


def test_openb_with_its_nodes_and_models(pumice: Pumice, tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p-0,1000,1024,1,500,V100M16,LS,Running,0,9,1\n"
        "p-1,1000,1024,1,1000,,LS,Failed,1,9,2\n"
    )
    nodes.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\na,32000,262144,1,T4\nb,9000,9000,1,V100M16\n"
    )
    for options in (("--trace", pods, "--trace", nodes), ("--trace", pods, "--nodes", nodes)):
        ran = pumice("simulate", *options, "-o", "json")
        assert ran.code == 0
        found = [(each["nodes"], each["outcome"], each["end"]) for each in ran.json["jobs"]]
        assert found == [(["b"], "Completed", 8.0), (["a"], "Failed", 8.0)]
        assert ran.err == f"{pods}: 1 pod asked for a share of a GPU; each gets a whole one\n"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\na,-1,9,1,T4\n")
    ran = pumice("simulate", "--trace", pods, "--nodes", nodes)
    assert ran.err.splitlines()[-1].startswith(
        f"pumice simulate: --nodes {nodes}: nodes, line 2: cpu_milli is -1; expected"
    )


def test_progress_of_the_other_world_is_shown_when_the_base_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trace_run, "_FILE_SECONDS", 0.0)
    is_over = False
    line = _ProgressLine(4, "other: ", lambda: is_over)
    line.show(Progress(0.0, 1, 2, 1))
    assert capsys.readouterr().err == ""
    is_over = True
    line.show(Progress(0.0, 1, 2, 1))
    assert capsys.readouterr().err.startswith("other: day 0.0: 1 of 4 jobs are over")


def test_ctrl_c_gives_what_is_known(pumice: Pumice, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: _ProgressLine, step: Progress) -> None:
        if step.ended == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_ProgressLine, "show", stop)
    before = signal.getsignal(signal.SIGINT)
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x2cpu", "-o", "json", stdin=TRACE)
    assert ran.code == 130
    assert [each["outcome"] for each in ran.json["jobs"]] == [
        "Completed", "Running", "Waiting", "Waiting", "Unreached",
    ]  # fmt: skip
    assert ran.json["summary"]["is_whole"] is False
    assert "stopped after 10 s of the trace" in ran.err
    assert signal.getsignal(signal.SIGINT) is before


def test_other_nodes_are_compared(pumice: Pumice, tmp_path: Path) -> None:
    """In a second process. Equal runs differ in nothing."""
    jobs = tmp_path / "jobs.csv"
    options = ("--trace", "-", "--nodes", "1x2cpu", "-o", "json", "--fail-if", "wait.max < -50%")
    ran = pumice("simulate", *options, "--compare-nodes", "1x4cpu", "--jobs", jobs, stdin=TRACE)
    assert ran.code == 1
    assert "wait.max" in ran.err
    assert (
        ran.json["base"]["summary"]["wait"]["max"],
        ran.json["other"]["summary"]["wait"]["max"],
    ) == (13, 4)
    assert ran.json["differences"]["summary"]["wait"]["max"] == -9
    assert jobs.read_text() != (tmp_path / "jobs.other.csv").read_text()
    ran = pumice("simulate", *options, "--compare-nodes", "1x2cpu", stdin=TRACE)
    assert ran.code == 0
    assert (ran.json["differences"]["gained"], ran.json["differences"]["lost"]) == ([], [])
    assert ran.json["base"]["jobs"] == ran.json["other"]["jobs"]


def test_progress_has_an_estimate() -> None:
    begin = progress_text(Progress(0.0, 20, 3, 1), 2000, 5)
    assert begin == "day 0.0: 20 of 2,000 jobs are over, 1 run, 3 wait"
    later = progress_text(Progress(86400 * 1.5, 500, 30, 10), 2000, 100)
    assert later == "day 1.5: 500 of 2,000 jobs are over, 10 run, 30 wait; about 5 min left"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "Missing option '--state'; write `pumice simulate --state FILE`, or `pumice simulate --trace FILE`"),
        (("--nodes", "1x1cpu"), "--nodes is for traces: name one with --trace FILE"),
        (("--state", "-", "--queue", "q"), "--queue is for traces: name one with --trace FILE"),
        (("--live", "j", "--cycles", "2"), "--live reads the cluster; leave out --cycles"),
        (("--live", "j", "--trace", "-"), "--live reads the cluster; leave out --trace"),
        (("--trace", "-", "--at", "7"), "--at is for single cycles, not for --trace"),
        (("--trace", "-", "--cycles", "2"), "--cycles is for single cycles, not for --trace"),
        (("--trace", "-", "--state", "-"), "stdin (-) can be read only once"),
        (("--trace", "no-file"), "no-file: no such file"),
        (("--trace", "-"), "no nodes: add them, for example --nodes 16x4cpu, or in --state"),
        (("--trace", "-", "--format", "swf"), "-: 5 of 5 lines cannot be read, which is more than 1 %: line 1: 11 fields; expected the 18 of SWF 2.2; …"),
        (("--trace", "-", "--nodes", "4q"), "--nodes '4q': '4q' is no amount, such as 8gpu, 256Gi or cpu=500m; expected [COUNTx]AMOUNT"),
        (("--trace", "-", "--nodes", "1x1cpu", "--queue", "A B"), "--queue: a lowercase RFC 1123 subdomain"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(pumice: Pumice, arguments: tuple[str, ...], why: str) -> None:
    ran = pumice("simulate", *arguments, stdin=TRACE)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"pumice simulate: {why[:30]}")
    assert why.split("; …")[0] in line


def test_an_empty_trace_and_skipped_lines(pumice: Pumice, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x1cpu", "-o", "json", "--report", page)
    assert "<h1>stdin</h1>" in page.read_text()
    assert (ran.code, ran.json["jobs"], ran.json["summary"]["makespan"]) == (0, [], None)
    unknown = "1 0 0 -1 1 -1 -1 1 9 -1 5 -1 -1 -1 -1 -1 -1 -1\n"
    text = f"; MaxProcs: 2\n{unknown * 7}2 0 0 1 2 -1 -1 2 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
    ran = pumice("simulate", "--trace", "-", "--nodes", "2x1cpu", "-o", "json", stdin=text)
    assert (ran.code, len(ran.json["jobs"]), ran.json["summary"]["skipped"]) == (0, 1, 7)
    lines = ran.err.splitlines()
    assert lines[0] == "-: line 2: skipped: job 1 has no run time"
    assert lines[5:] == ["-: 2 more lines skipped"]
    ran = pumice("simulate", "--trace", "-", stdin=text)
    assert "for example --nodes 2x1cpu (the header of the trace suggests these)" in ran.err


def test_a_run_that_makes_no_progress_says_so(pumice: Pumice) -> None:
    spec = {
        "tasks": job("", [task("w", 1, cpu="1")])["spec"]["tasks"],
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "maxRetry": 1_000_000,
    }
    line = json.dumps({"submit": 0, "duration": 1, "fails": True, "manifest": {"spec": spec}})
    ran = pumice("simulate", "--trace", "-", "--nodes", "1x1cpu", "-o", "json", stdin=line)
    assert (ran.code, ran.json["summary"]["is_whole"]) == (1, False)
    assert ran.err.count("pods are evicted or made again without end") == 1
    assert "stopped after" not in ran.err


def test_a_drawn_trace_is_simulated(pumice: Pumice) -> None:
    drawn = pumice("trace", "generate", "--jobs", "40", "--seed", "3", "--days", "0.1")
    assert (drawn.code, drawn.err, len(drawn.out.splitlines())) == (0, "", 40)
    assert drawn.out == pumice("trace", "generate", "--jobs=40", "--seed=3", "--days=0.1").out
    ran = pumice(
        "simulate", "--trace", "-", "--nodes", "9x8gpu,32cpu,256Gi", "-o", "json", stdin=drawn.out
    )
    assert ran.code == 0
    counts = ran.json["summary"]["jobs"]
    assert counts["refused"] == counts["unreached"] == 0
    assert counts["completed"] > 30


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--jobs", "-1"), "-1: expected a whole number from 0 to 1000000"),
        (("--jobs", "1", "--wave", "nan"), "nan: expected a number from 0 to 1"),
        (("--jobs", "1", "--gpus", "1,x"), "x: expected a whole number from 0 to 1024"),
        (("--jobs", "1", "--pods", "65"), "--pods: expected at most 64"),
        (("--jobs", "1", "--gpus", "1.5"), "1.5: expected a whole number from 0 to 1024"),
    ],
)
def test_bad_figures_are_one_line(pumice: Pumice, arguments: tuple[str, ...], why: str) -> None:
    ran = pumice("trace", "generate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert len(ran.err.splitlines()) == 1
