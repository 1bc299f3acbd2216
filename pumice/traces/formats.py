"""The formats of traces: which one a file has, and the trace of one or two files."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from pumice.api.messages import counted
from pumice.traces.cluster_past import read_cluster_past
from pumice.traces.job_list import UTF_8_MARK
from pumice.traces.openb import NODE_COLUMNS, POD_COLUMNS, read_openb_nodes, read_openb_pods
from pumice.traces.own_format import read_csv, read_json_lines
from pumice.traces.swf import read_swf
from pumice.traces.trace import Trace, TraceError


class TraceFormat(StrEnum):
    """Names of the formats."""

    OWN = "own"
    CSV = "csv"
    SWF = "swf"
    OPENB = "openb"
    CLUSTER = "cluster"


_READERS: dict[TraceFormat, Callable[[bytes], Trace]] = {
    TraceFormat.OWN: read_json_lines,
    TraceFormat.CSV: read_csv,
    TraceFormat.SWF: read_swf,
    TraceFormat.OPENB: read_openb_pods,
    TraceFormat.CLUSTER: read_cluster_past,
}

_HEAD = 1 << 16
"""Bytes that show the format."""

_NOT_TEXT = {
    b"\x1f\x8b": "it is compressed: `gunzip -c FILE | pumice simulate --trace -` reads it",
    b"BZh": "it is compressed: `bunzip2 -c FILE | pumice simulate --trace -` reads it",
    b"\xfd7zXZ\0": "it is compressed: `xz -dc FILE | pumice simulate --trace -` reads it",
    b"\x28\xb5\x2f\xfd": "it is compressed: `zstd -dc FILE | pumice simulate --trace -` reads it",
    b"PK\x03\x04": "it is a zip archive; expected what is in it",
    b"\xff\xfe": "it is UTF-16; expected UTF-8",
    b"\xfe\xff": "it is UTF-16; expected UTF-8",
}
"""First bytes of files that are no text, and what is said of them."""


def read_trace(files: Sequence[tuple[str, bytes]], given: TraceFormat | None = None) -> Trace:
    """The trace of a file, and of a second one with the nodes of `openb`.

    Args:
        files: Names and contents.
        given: The format; None to find it out.

    Raises:
        TraceError: The files hold no trace, or two.
    """
    for name, data in files:
        for begin, why in _NOT_TEXT.items():
            if data.startswith(begin):
                raise TraceError(f"{name}: {why}")
    nodes = [each for each in files if is_openb_nodes(each[1])]
    traces = [each for each in files if not is_openb_nodes(each[1])]
    if len(traces) != 1 or len(nodes) > 1:
        names = ", ".join(name for name, _ in files)
        raise TraceError(
            f"{counted(len(traces), 'trace')} and {counted(len(nodes), 'file')} of nodes in {names}; "
            "expected one trace, and for openb a second file with its nodes"
        )
    ((name, data),) = traces
    try:
        trace = _READERS[given or _found(name, data)](data)
        if nodes:
            ((name, data),) = nodes
            trace.objects.nodes += read_openb_nodes(data)
    except TraceError as error:
        raise TraceError(f"{name}: {error}") from None
    return trace


def is_openb_nodes(data: bytes) -> bool:
    """True for a file of nodes of `openb`."""
    return set(NODE_COLUMNS) <= _columns(data)


def _found(name: str, data: bytes) -> TraceFormat:
    head = data[:_HEAD].removeprefix(UTF_8_MARK).lstrip()
    first = head.split(b"\n", 1)[0].strip()
    columns = _columns(data)
    if not head:
        return TraceFormat.SWF if name.endswith(".swf") else TraceFormat.OWN
    if first.startswith(b"{"):
        is_line = first.endswith(b"}") and b'"submit"' in first
        is_list = b'"items"' in head or b'"kind"' in head or first == b"{"
        return TraceFormat.CLUSTER if is_list and not is_line else TraceFormat.OWN
    if set(POD_COLUMNS) - {"gpu_spec", "pod_phase"} <= columns:
        return TraceFormat.OPENB
    if "submit" in columns:
        return TraceFormat.CSV
    if first.startswith(b";") or _is_number(first.split()[0]):
        return TraceFormat.SWF
    raise TraceError(
        "cannot tell the format; expected JSON lines or CSV with submit, SWF, openb, or the JSON of `kubectl get -o json`: name "
        f"it with --format {'|'.join(TraceFormat)}"
    )


def _columns(data: bytes) -> set[str]:
    """The columns that the first line names if it is the header of a CSV file."""
    first = data[:_HEAD].removeprefix(UTF_8_MARK).lstrip().split(b"\n", 1)[0]
    return {cell.strip().strip('"').lower() for cell in first.decode(errors="replace").split(",")}


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
