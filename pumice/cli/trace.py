"""`pumice trace`: draw traces for `pumice simulate --trace`."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from pumice.cli import exits
from pumice.cli.options import whole_number

HELP = "Draw traces of jobs for `pumice simulate --trace`."

_DAY = 86_400.0
_LARGEST = 1e9
_GROUP = 1000
"""Lines that are written together."""


def _number(least: float, most: float = _LARGEST) -> Callable[[object], float]:
    """A `parser` of an option that takes numbers in these bounds."""

    def parsed(value: object) -> float:
        try:
            found = float(str(value))
        except ValueError:
            found = least - 1
        if not least <= found <= most:
            raise typer.BadParameter(f"{value}: expected a number from {least:g} to {most:g}")
        return found

    return parsed


def _several(one: Callable[[object], float]) -> Callable[[object], tuple[float, ...]]:
    """A `parser` of an option that takes numbers with commas between."""

    def parsed(value: object) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(one(part) for part in str(value).split(","))

    return parsed


def _option(name: str, text: str, parser: Callable[[object], Any], metavar: str = "N") -> Any:
    return typer.Option(name, metavar=metavar, parser=parser, help=text)


_SHARE = _number(0, 1)


def _share(name: str, of: str) -> Any:
    return _option(name, f"Share of {of}.", _SHARE, "SHARE")


class TraceFigures(msgspec.Struct, frozen=True):
    """The figures of a drawn trace; `pumice.traces.generator.TraceShape` explains them."""

    days: Annotated[
        float, _option("--days", "Days over which jobs are submitted.", _number(0.001, 36500))
    ] = 7.0
    wave: Annotated[
        float,
        _option(
            "--wave",
            "How far the rate of submissions swings within a day: 0 not at all, 1 down to 0; most come at 14:00.",
            _SHARE,
        ),
    ] = 0.4
    median: Annotated[
        float, _option("--median", "Median of durations.", _number(0.001), "SECONDS")
    ] = 2400.0
    spread: Annotated[
        float,
        _option("--spread", "Standard deviation of the logarithm of durations.", _number(0, 10)),
    ] = 1.5
    longest: Annotated[
        float, _option("--longest", "Longest duration.", _number(0.001), "SECONDS")
    ] = 2 * _DAY
    pods: Annotated[
        float,
        _option("--pods", "Mean number of pods of a job; each has 1, 2, 4, ….", _number(1, 10_000)),
    ] = 4.0
    most_pods: Annotated[
        int, _option("--most-pods", "Most pods of a job.", whole_number(1, 10_000))
    ] = 64
    gpus: Annotated[
        Any,
        _option(
            "--gpus",
            "GPUs of a pod: those that occur; 0 for pods of CPUs alone.",
            _several(whole_number(0, 1024)),
            "N,N…",
        ),
    ] = (1, 2, 4, 8)
    gpu_weights: Annotated[
        Any,
        _option("--gpu-weights", "How frequent each of --gpus is.", _several(_number(0)), "N,N…"),
    ] = (70, 12, 8, 10)
    cpu: Annotated[
        float, _option("--cpu", "CPUs of a pod for each of its GPUs.", _number(0, 10_000))
    ] = 4.0
    memory: Annotated[
        float,
        _option("--memory", "Memory of a pod for each of its GPUs.", _number(0, 100_000), "GIB"),
    ] = 24.0
    tenants: Annotated[
        int, _option("--tenants", "Users; each has a namespace.", whole_number(1, 100_000))
    ] = 20
    zipf: Annotated[
        float,
        _option(
            "--zipf",
            "Exponent of the users' shares: the k-th submits in proportion to 1/k^N.",
            _number(0, 10),
        ),
    ] = 1.0
    queues: Annotated[
        int, _option("--queues", "Queues; users are dealt out to them.", whole_number(1, 10_000))
    ] = 4
    urgent: Annotated[float, _share("--urgent", "jobs with --priority")] = 0.05
    priority: Annotated[
        int,
        _option(
            "--priority", "Priority of these jobs.", whole_number(-1_000_000_000, 1_000_000_000)
        ),
    ] = 100
    elastic: Annotated[
        float,
        _share("--elastic", "jobs that half of their pods are enough for"),
    ] = 0.1
    failing: Annotated[
        float,
        _share("--failing", "jobs that fail after a part of their duration"),
    ] = 0.05
    hopeless: Annotated[float, _share("--hopeless", "jobs whose pods fit on no node")] = 0.0002
    hopeless_gpus: Annotated[
        int, _option("--hopeless-gpus", "GPUs of such a pod.", whole_number(1, 10_000))
    ] = 64


def generate(
    jobs: Annotated[int, _option("--jobs", "Number of jobs.", whole_number(0, 1_000_000))],
    seed: Annotated[
        int, _option("--seed", "Seed: the same one draws the same trace.", whole_number(0, 2**63))
    ] = 0,
    *,
    figures: TraceFigures,
) -> None:
    """Draw a trace, as JSON lines on stdout.

    The defaults are a busy cluster of GPUs with a queue that drains at night if it has a node of 8 GPUs for each 67 jobs: 20,000 jobs on 300
    nodes, 100,000 on 1,500.
    """
    from pumice.traces.generator import TraceShape, generated
    from pumice.traces.trace import TraceError

    given = {name: getattr(figures, name) for name in figures.__struct_fields__}
    shape = TraceShape(jobs=jobs, seed=seed, **given)
    encoder = msgspec.json.Encoder()
    group: list[bytes] = []
    try:
        for each in generated(shape):
            group.append(encoder.encode(each))
            if len(group) == _GROUP:
                _write(group)
    except TraceError as error:
        raise exits.UserError(str(error)) from None
    _write(group)


def _write(lines: list[bytes]) -> None:
    """Write lines, and empty the list."""
    sys.stdout.write("".join(f"{line.decode()}\n" for line in lines))
    lines.clear()


VERBS = {
    "generate": (
        generate,
        (
            "pumice trace generate --jobs 1000 --seed 7 > trace.jsonl",
            "pumice trace generate --jobs 5000 --days 2 --gpus 0 --gpu-weights 1 --pods 16 --most-pods 512",
            "pumice trace generate --jobs 500 | pumice simulate --trace - --nodes 8x8gpu,32cpu,256Gi",
        ),
    ),
}
