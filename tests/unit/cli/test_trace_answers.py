"""What runs of traces are answered with: JSON, tables, files, and thresholds that fail them."""

import csv
import json
import os
import re
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.cli.exits import UserError
from pumice.cli.output import Format
from pumice.cli.simulation.answers import Answers
from pumice.cli.simulation.two_processes import in_two_processes
from pumice.traces.records import Past
from tests.kit.pasts import nothing, small


def answers(
    names: tuple[str, ...] = ("base",), output: Format = Format.JSON, **files: Any
) -> Answers:
    fields = {"jobs": None, "report": None, "fail_if": ()} | files
    return Answers.of("trace", names, output, **fields)


def slower() -> Past:
    past = small()
    past.jobs[2].end = 80.0
    return past


def test_json_has_the_keys_that_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert answers().give([small()]) is False
    found = json.loads(capsys.readouterr().out)
    assert [*found] == ["jobs", "summary"]
    job = {"name", "queue", "submit", "start", "end", "wait", "run", "turnaround", "slowdown"}
    assert {*job, "bounded_slowdown", "evictions", "nodes"} <= {*found["jobs"][0]}
    summary = {"makespan", "utilization", "wait", "turnaround", "bounded_slowdown", "jain"}
    assert {*summary, "evictions", "skipped", "cost"} <= {*found["summary"]}
    assert found["summary"]["wait"]["p95"] == 27


def test_numbers_have_six_decimals_and_no_traces_of_how_they_were_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Moments of wakes are told in UNIX seconds, of which a float keeps a quarter of a microsecond, and differences round again."""
    base, other = small(), small()
    base.jobs[2].end, other.jobs[2].end = 80.25699996948, 80.35699996948
    files: dict[str, Any] = {"jobs": tmp_path / "jobs.csv", "report": tmp_path / "report.html"}
    bounds = ("makespan != 80.357", "jain < 0")
    assert not answers(("a.conf", "b.conf"), **files, fail_if=bounds).give([base, other])
    text = capsys.readouterr().out
    found = json.loads(text)
    assert found["base"]["jobs"][2]["end"] == 80.257
    assert found["differences"]["summary"]["makespan"] == 0.1
    figures = re.findall(r'<data value="[^"]*', (tmp_path / "report.html").read_text())
    assert '<data value="80.257' in figures
    written = "".join([text, (tmp_path / "jobs.csv").read_text(), *figures])
    assert not re.search(r"\d\.\d{7}", written)
    assert "80.257" in (tmp_path / "jobs.csv").read_text()


def test_two_runs_have_a_document_each_and_their_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files: dict[str, Any] = {"jobs": tmp_path / "jobs.csv", "report": tmp_path / "report.html"}
    fail_if = ("makespan > +10%", "wait.p95 > +10%", "makespan > 100")
    given = answers(("a.conf", "b.conf"), **files, fail_if=fail_if)
    assert given.give([small(), slower()])
    printed = capsys.readouterr()
    assert printed.err == ("--fail-if makespan > +10%: makespan is 80.0, and 40.0 in the base\n")
    found = json.loads(printed.out)
    assert [*found] == ["base", "other", "differences"]
    assert found["differences"]["summary"]["makespan"] == 40
    assert [job["name"] for job in found["differences"]["lost"]] == ["c"]
    ends = [
        [row["finish_time"] for row in csv.DictReader((tmp_path / name).read_text().splitlines())]
        for name in ("jobs.csv", "jobs.other.csv")
    ]
    assert ends == [["10.0", "30.0", "40.0", ""], ["10.0", "30.0", "80.0", ""]]
    assert "b.conf on the right" in (tmp_path / "report.html").read_text()


def test_names_of_files_that_are_no_utf_8_stand_in_the_report(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    answers(("\udcff.conf",), report=page).give([small()])
    assert "\\udcff.conf" in page.read_text()


def test_tables_show_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    answers(("a", "b"), Format.TEXT).give([small(), slower()])
    printed = capsys.readouterr().out
    assert "makespan               40s     80s     +40s" in printed
    assert "default/c  red    37s   77s    +40s" in printed
    answers(("a", "b"), Format.TEXT).give([small(), small()])
    assert "all numbers are equal" in capsys.readouterr().out
    answers(output=Format.TEXT).give([small()])
    assert "wait              3     9s     0s     27s  27s  27s" in capsys.readouterr().out
    answers(output=Format.TEXT).give([nothing()])
    assert capsys.readouterr().out.startswith("0 jobs\n")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"fail_if": ("wait.p95",)}, "--fail-if: invalid threshold 'wait.p95'"),
        ({"fail_if": ("mkespan > 1",)}, "--fail-if: threshold 'mkespan > 1': the summary has no"),
        ({"fail_if": ("jain > +1%",)}, "--fail-if: threshold 'jain > +1%' is a percentage"),
        ({"fail_if": ("wait.p96 > 1",)}, "--fail-if: threshold 'wait.p96 > 1': the summary has no"),
        ({"fail_if": ("utilization > 1",)}, "--fail-if: threshold 'utilization > 1': the summary"),
        (
            {"jobs": Path("x"), "report": Path("./x")},
            "x: --jobs and --report would write over this",
        ),
        ({"jobs": Path("x"), "inputs": ["../x", "x"]}, "x: --jobs and --report would write over"),
        ({"jobs": Path("/nowhere/jobs.csv")}, "/nowhere/jobs.csv: cannot be written: No such file"),
        ({"jobs": Path("-")}, "--jobs and --report write files"),
        ({"report": Path("/")}, "/: cannot be written: Is a directory"),
    ],
)
def test_what_cannot_be_done_is_said_before_a_run(
    files: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as raised:
        answers(**files)
    assert str(raised.value).startswith(message)


def test_a_number_that_a_run_has_not_is_said_after_it() -> None:
    with pytest.raises(UserError, match=r"no number 'utilization.gpu'; it has, for example"):
        answers(fail_if=("utilization.gpu < 1",)).give([small()])


def test_two_functions_run_in_two_processes() -> None:
    def found() -> tuple[int, bytes]:
        return os.getpid(), bytes(1_000_000)  # more than a pipe holds

    def found_later(is_first_over: Callable[[], bool]) -> tuple[int, bytes]:
        while not is_first_over():
            time.sleep(0.01)
        return found()

    here, there = in_two_processes(found, found_later)
    assert here[0] == os.getpid() != there[0]
    assert here[1] == there[1]


def test_what_the_other_process_raises_is_raised_and_its_death_reported() -> None:
    def refused(_: object) -> int:
        raise UserError("b.conf: is bad")

    with pytest.raises(UserError, match=r"b\.conf: is bad"):
        in_two_processes(os.getpid, refused)

    def killed(_: object) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with pytest.raises(UserError, match=r"ended without a result \(exit code -9\)"):
        in_two_processes(os.getpid, killed)


def test_ctrl_c_ends_both_once_and_what_they_have_is_kept() -> None:
    reading, writing = os.pipe()

    def until_interrupted(_: object) -> str:
        try:
            os.write(writing, b"!")
            signal.pause()
        except KeyboardInterrupt:
            return "what is known"
        return ""

    def interrupted() -> str:
        try:
            os.read(reading, 1)
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            return "what is known here"
        return ""

    assert in_two_processes(interrupted, until_interrupted) == (
        "what is known here",
        "what is known",
    )
    os.close(reading)
    os.close(writing)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_the_other_process_still_runs_keeps_what_it_has() -> None:
    reading, writing = os.pipe()

    def done() -> str:
        os.write(writing, b"!")
        return "done"

    def interrupts_both(_: object) -> str:
        try:
            os.read(reading, 1)
            time.sleep(0.1)  # the other one waits for this one by now
            os.kill(os.getppid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            return "what is known"
        return ""

    assert in_two_processes(done, interrupts_both) == ("done", "what is known")
    os.close(reading)
    os.close(writing)


def test_the_other_process_ends_with_this_one_whatever_ends_it() -> None:
    reading, writing = os.pipe()
    killed = os.fork()
    if not killed:
        try:
            in_two_processes(lambda: os.kill(os.getpid(), signal.SIGKILL), lambda _: time.sleep(60))
        finally:
            os._exit(1)
    os.close(writing)
    assert os.waitpid(killed, 0)[1] == signal.SIGKILL
    with os.fdopen(reading) as pipe:
        assert select.select([pipe], [], [], 30)[0]  # no process has its other end
