"""Readers of traces: what they make of each line, and how they refuse what is none."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pumice.traces.formats import TraceFormat, read_trace
from pumice.traces.job_list import LINE_LIMIT
from pumice.traces.trace import YEAR_2000, TraceError, TraceJob
from tests.kit.tables import table

CASES = table("traces/lines")
GOOD = {
    "own": '{"submit": 3, "name": "good"}',
    "csv": "3,",
    "swf": "1 3 0 1 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1",
}
ENOUGH = 100
"""Good lines beside a bad one, so that it is no more than 1 %."""


def names(cases: list[dict[str, Any]]) -> list[str]:
    return [case["name"] for case in cases]


READ = [case for case in CASES if "jobs" in case]


@pytest.mark.parametrize("case", READ, ids=names(READ))
def test_what_is_read(case: dict[str, Any]) -> None:
    """Also with a mark of UTF-8, and as Windows ends lines."""
    text = case["text"]
    marked = "\ufeff" + text.replace("\n", "\r\n")
    for given, data in ((None, text), (None, marked), (TraceFormat(case["format"]), marked)):
        if given is None and not text.strip():
            continue
        trace = read_trace([(f"trace.{case['format']}", data.encode())], given)
        assert trace.jobs == msgspec.convert(case["jobs"], list[TraceJob])
        assert trace.zero == case.get("zero", YEAR_2000)
        assert trace.nodes_hint == case.get("nodes", "")
        assert trace.remarks == case.get("remarks", [])
        found = [(each.line, each.why, each.is_bad) for each in trace.skipped]
        expected = case.get("skipped", [])
        assert len(found) == len(expected)
        for (line, why, is_bad), (number, part) in zip(found, expected, strict=True):
            assert line == number
            assert part in why
            assert not is_bad


BAD = [case for case in CASES if "bad" in case]


@pytest.mark.parametrize("case", BAD, ids=names(BAD))
def test_a_bad_line_is_skipped_and_named(case: dict[str, Any]) -> None:
    given = case["format"]
    header = [case["header"]] if "header" in case else []
    text = "\n".join([*header, *[GOOD[given]] * (ENOUGH - 1), case["bad"], ""])
    trace = read_trace([("t", text.encode())], TraceFormat(given))
    assert len(trace.jobs) == ENOUGH - 1
    assert trace.lines == ENOUGH
    (skipped,) = trace.skipped
    assert skipped.line == len(header) + ENOUGH
    assert skipped.is_bad
    assert case["why"] in skipped.why
    assert len(skipped.why) < 300


REFUSED = [case for case in CASES if "error" in case]


@pytest.mark.parametrize("case", REFUSED, ids=names(REFUSED))
def test_what_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(TraceError) as caught:
        read_trace([("t", case["text"].encode())], TraceFormat(case["format"]))
    assert str(caught.value).startswith(f"t: {case['error']}")


@pytest.mark.parametrize("given", ["own", "csv"])
def test_hostile_bytes_are_one_bad_line_each(given: str) -> None:
    """A line that is not UTF-8, one of 10 MB, deep nesting, and a name that a thousand jobs have."""
    header = b"submit,name\n" if given == "csv" else b""
    good = b'3,"a"' if given == "csv" else b'{"submit": 3, "name": "a"}'
    hostile = [b"\xff\xfe\x00", b'{"a": "' + b"x" * 10 * LINE_LIMIT, b'{"a":' * 200_000]
    trace = read_trace([("t", header + b"\n".join([*[good] * 1000, *hostile]))], TraceFormat(given))
    assert [each.line - len(header[:1]) for each in trace.skipped] == [1001, 1002, 1003]
    assert len({job.name for job in trace.jobs}) == 1000


def test_the_order_of_lines_does_not_matter() -> None:
    """Also for names that occur twice at one moment."""
    lines = [f'{{"submit": {n % 3}, "name": "j{n % 5}", "duration": {n % 2}}}' for n in range(30)]
    traces = [read_trace([("t", "\n".join(each).encode())]).jobs for each in (lines, lines[::-1])]
    assert traces[0] == traces[1]
    assert [job.submit for job in traces[0]] == sorted(n % 3 for n in range(30))


def test_openb_has_its_nodes_in_a_second_file() -> None:
    pods = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p,1000,1024,1,1000,V100M16|V100M32,LS,Running,0,9,1\n"
    )
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0227,32000,262144,0,nan\nOpenb-node-1,96000,786432,8,V100M32\n"
    for files in ([("p", pods), ("n", nodes)], [("n", nodes), ("p", pods)]):
        trace = read_trace([(name, text.encode()) for name, text in files])
        assert [node.metadata.name for node in trace.nodes] == ["openb-node-0227", "openb-node-1"]
        assert trace.nodes[1].status.allocatable == {
            "cpu": "96000m",
            "memory": "786432Mi",
            "pods": "110",
            "nvidia.com/gpu": "8",
        }
        assert trace.nodes[1].metadata.label("nvidia.com/gpu.product") == "V100M32"
        (job,) = trace.jobs
        assert job.manifest is not None
        (task,) = job.manifest["spec"]["tasks"]
        affinity = task["template"]["spec"]["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert term["matchExpressions"][0]["values"] == ["V100M16", "V100M32"]
    for text, why in (
        (
            "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\na,1,1,0,\n",
            "n: nodes, line 3: a second node a",
        ),
        ("sn,cpu_milli,memory_mib,gpu,model\na,x,1,0,\n", "n: nodes, line 2: cpu_milli is x"),
        ("sn,cpu_milli,memory_mib,gpu,model\na,1\n", "n: nodes, line 2: 2 columns"),
    ):
        with pytest.raises(TraceError, match=why):
            read_trace([("p", pods.encode()), ("n", text.encode())])


NODES = ("n", b"sn,cpu_milli,memory_mib,gpu,model\n")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([("a", b"hello\n")], "a: cannot tell the format; expected JSON lines or CSV"),
        ([("a", b'{"submit": 1}'), ("b", b'{"submit": 1}')], "2 traces and 0 files of nodes in a, b; expected one"),
        ([NODES], "0 traces and 1 file of nodes in n; expected one"),
        ([("a", b'{"submit": 1}'), NODES, NODES], "1 trace and 2 files of nodes in a, n, n; expected one"),
        ([("a.gz", b"\x1f\x8b\x08")], "a.gz: it is compressed: `gunzip -c FILE | pumice simulate --trace -` reads it"),
        ([("a", '{"submit": 1}'.encode("utf-16"))], "a: it is UTF-16; expected UTF-8"),
    ],
)  # fmt: skip
def test_files_without_a_trace(files: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(TraceError, match=f"^{why}"):
        read_trace(files)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gunzip": gzip.compress,
    "bunzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("tool", COMPRESS)
@pytest.mark.parametrize("given", [None, *TraceFormat])
def test_what_is_compressed_names_the_tool_that_reads_it(
    tool: str, given: TraceFormat | None
) -> None:
    """Also where the format is named, and of a file of nodes."""
    trace, packed = ("t", b"submit\n1\n"), ("n", COMPRESS[tool](NODES[1]))
    for files in ([packed], [trace, packed]):
        with pytest.raises(TraceError, match=f"^n: it is compressed: `{tool} -d?c FILE"):
            read_trace(files, given)
