"""`pumice simulate`: scheduling cycles over manifests."""

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pumice.api.fields import plain
from pumice.api.kinds import JOB
from pumice.api.meta import parse_time
from pumice.cli import exits
from pumice.cli.files.configuration import read_config
from pumice.cli.files.manifests import named, read
from pumice.cli.options import (
    ClusterOptions,
    Output,
    SchedulerConfig,
    scheduler_name_option,
    state_option,
    whole_number,
)
from pumice.cli.output import Format, json_line, note, paint, table, write, write_json
from pumice.cli.simulation.trace_options import TraceOptions

if TYPE_CHECKING:
    from pumice.api.podgroups import PodGroup
    from pumice.cli.simulation.simulation_input import SimulationInput
    from pumice.scheduler import Config, CycleResult, Reason

_NO_NODES = (
    "no Nodes are given, so no pod is placed: add them to --state, for example "
    "`kubectl get nodes -o json | pumice simulate --state job.yaml --state -`"
)

_YEAR_9999 = 253_370_764_800.0
"""Start of the last year that RFC 3339 can write; cycles after the last accepted time need room."""

EXAMPLES = (
    "pumice simulate --state nodes.yaml --state job.yaml",
    "kubectl get nodes,queues,podgroups,pods -A -o json | pumice simulate --state -",
    "pumice simulate --state cluster.json --config volcano-scheduler.conf --cycles 3 --explain",
    "pumice simulate --trace jobs.swf --nodes 64x8cpu",
    'pumice simulate --trace jobs.csv --nodes 8x8gpu --compare new.conf --fail-if "wait.p95 > +10%"',
    "pumice simulate --live job.yaml",
)


_StateOption = Annotated[
    list[str] | None,
    state_option(
        "Nodes, HyperNodes, Namespaces, Queues, PriorityClasses, RuntimeClasses, PodGroups, Pods, Jobs, ResourceQuotas, and claims with their volumes, "
        "StorageClasses and CSINodes; - "
        "reads stdin. Several files may follow. JSON is read far faster than YAML.",
    ),
]
_CyclesOption = Annotated[
    int,
    typer.Option("--cycles", metavar="N", parser=whole_number(1), help="How many cycles to run."),
]
_ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show the data behind each reason.")
]
_TimingsOption = Annotated[
    bool, typer.Option("--timings", help="Write one line of JSON for each cycle to stderr.")
]
_AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Time of the first cycle, RFC 3339 or UNIX seconds; by default the newest timestamp in the state. Each further cycle is a second later.",
    ),
]
_SchedulerNameOption = Annotated[
    list[str] | None,
    scheduler_name_option(
        "Schedulers whose pods are placed (volcano); other pods only use resources.",
    ),
]


_LiveOption = Annotated[
    Path | None,
    typer.Option(
        "--live",
        metavar="JOB.yaml",
        help="When the Job of a file would start in the cluster as it is now, and with how many pods; it is not submitted.",
    ),
]


def simulate(
    state: _StateOption = None,
    config: SchedulerConfig = None,
    cycles: _CyclesOption = 1,
    explain: _ExplainOption = False,
    timings: _TimingsOption = False,
    at: _AtOption = None,
    scheduler_name: _SchedulerNameOption = None,
    live: _LiveOption = None,
    output: Output = Format.TEXT,
    *,
    traces: TraceOptions,
    cluster: ClusterOptions,
) -> None:
    """Run scheduling cycles over manifests, or a trace of jobs.

    Shows the node of each placed pod, and why other gangs wait. Nodes and phases of given pods and phases of given
    PodGroups are kept. Jobs are admitted first and become PodGroups, and pods once they are in their queue. Between
    two cycles bound pods start to run, and evicted or terminating pods are gone. Queue `default` always exists, and a claim that is not given counts
    as bound. Exit code 1: a PodGroup waits after the last cycle, or a Job was refused.

    With --trace the jobs of a file are submitted and run in virtual time, and what they got is measured. Exit code 1: --fail-if holds, or pods are
    only evicted and made again. Exit code 130: Ctrl-C has stopped the run, and what is known until then was printed.

    With --live the cluster is read, and nothing is submitted: when would the Job of a file start, and with how many pods now? Exit code 1: not now.
    """
    for_cycles = {
        "--cycles": cycles > 1,
        "--explain": explain,
        "--timings": timings,
        "--at": at is not None,
        "--scheduler-name": bool(scheduler_name),
    }
    given = [name for name, is_given in for_cycles.items() if is_given]
    if live is not None:
        others = {"--state": state is not None, "--trace": bool(traces.trace)}
        if taken := [*(name for name, is_given in others.items() if is_given), *given]:
            raise exits.UserError(f"--live reads the cluster; leave out {taken[0]}")
    traces.check(given)
    if traces.trace:
        from pumice.cli.simulation.trace_run import simulate_trace

        simulate_trace(traces, state or [], config, output)
    if live is not None:
        from pumice.cli.live.trial import try_job

        try_job(live, cluster, read_config(config), output)
    if state is None:
        raise exits.UserError(
            "Missing option '--state'; write `pumice simulate --state FILE`, or `pumice simulate --trace FILE` for a trace"
        )
    names = tuple(scheduler_name or ("volcano",))
    moment = _read_moment(at) if at is not None else None
    _simulate_cycles(state, read_config(config), names, moment, cycles, explain, timings, output)


def _simulate_cycles(
    state: list[str],
    scheduling: "Config",
    names: tuple[str, ...],
    moment: float | None,
    cycles: int,
    explain: bool,
    timings: bool,
    output: Format,
) -> NoReturn:
    """Run cycles over manifests."""
    from pumice.cli.lean import settled
    from pumice.cli.simulation.simulation_input import SimulationInput
    from pumice.scheduler.results import CycleFailedError
    from pumice.scheduler.simulate import UnreadableObjectError
    from pumice.traces.controlled_job import without_uids

    given = SimulationInput.of(named(read(state)))
    if not given.objects.nodes:
        note(_NO_NODES)
    try:
        run = _SimulateRun(given, scheduling, names)
        start = given.objects.newest() if moment is None else moment
        with settled():  # as a scheduler runs its cycles
            results = [_cycle(run, number, start, timings) for number in range(cycles)]
    except UnreadableObjectError as error:
        raise exits.UserError(f"--state: {error}") from None
    except CycleFailedError as error:
        raise exits.UserError(plain(without_uids(str(error)))) from None
    if output is Format.JSON:
        write_json(_as_json(run, results, explain))
    else:
        _write_text(run, results, explain)
    exits.finish(exits.REFUSED if run.simulation.pending or given.refused else exits.FINE)


def _read_moment(text: str) -> float:
    """Read a time: RFC 3339, or UNIX seconds.

    Raises:
        UserError: The text is neither, or the time is before 1970 or after 9998.
    """
    moment = parse_time(text)
    if moment is None:
        try:
            moment = float(text)
        except ValueError:
            moment = math.nan
    if not 0 <= moment < _YEAR_9999:
        raise exits.UserError(
            f"--at {text!r}: expected a time such as 2026-01-31T12:00:00Z, or UNIX seconds"
        )
    return moment


def _cycle(run: "_SimulateRun", number: int, start: float, timings: bool) -> dict[str, Any]:
    result, seconds = run.cycle(start + number)
    if timings:
        simulation = run.simulation
        counts = {"cycle": number + 1, "nodes": simulation.nodes, "pods": len(simulation.pods)}
        note(json_line(counts | {"decided": result.decided, "cpu_seconds": seconds}))
    return {"binds": result.binds, "pipelined": result.pipelined, "evicted": result.evicted}


class _SimulateRun:
    """A simulation with a controller."""

    def __init__(self, given: "SimulationInput", config: "Config", names: tuple[str, ...]) -> None:
        from pumice.scheduler.simulate import Simulation

        self.simulation: Simulation = Simulation(given.objects, config, scheduler_names=names)
        self._jobs = given.controlled_jobs()
        self._cycles = 0
        self.jobs: dict[str, str] = {}
        """Jobs of PodGroups; both are `namespace/name`."""
        self._name_jobs(given.objects.pod_groups)

    def _name_jobs(self, groups: "Iterable[PodGroup]") -> None:
        for group in groups:
            meta = group.metadata
            for owner in meta.owner_references or ():
                if (owner.api_version, owner.kind) == (JOB.api_version, JOB.kind):
                    self.jobs[meta.key] = f"{meta.namespace}/{owner.name}"

    def shown(self, text: str) -> str:
        """A text in which the PodGroups of Jobs are replaced by the Jobs."""
        for group, job in self.jobs.items():
            text = text.replace(group, job)
        return text

    def cycle(self, now: float) -> "tuple[CycleResult, float]":
        """What happens in a second: a cycle, and another one where the controller has made pods of what it let in.

        Returns:
            The result of both, and their CPU seconds.
        """
        if self._cycles:
            started, gone = self.simulation.advance()
            if self._jobs is not None:
                for pod in started:
                    self._jobs.put(pod)
                for pod in gone:
                    self._jobs.drop(pod)
        self._cycles += 1
        self._control(now)
        result, seconds = self._timed(now)
        if self._jobs is not None:
            self._jobs.set_statuses(result.pod_groups)
            if self._control(now):
                later, more = self._timed(now)
                self._jobs.set_statuses(later.pod_groups)
                return _together(result, later), seconds + more
        return result, seconds

    def _timed(self, now: float) -> "tuple[CycleResult, float]":
        begun = time.process_time()
        result = self.simulation.cycle(now)
        return result, time.process_time() - begun

    def _control(self, now: float) -> bool:
        """Run the controller; whether it has made pods."""
        if self._jobs is None:
            return False
        from pumice.traces.jobs import PASSES

        changes = self._jobs.work(now)
        for key in changes.unsettled:
            note(
                f"Job/{key}: the controller still plans changes after {PASSES} passes; "
                "pods may be missing here that a cluster would have"
            )
        self._name_jobs(group for group in changes.groups.values() if group is not None)
        for pod in changes.gone:
            self.simulation.remove_pod(pod)
        for key, group in changes.groups.items():
            if group is None:
                self.simulation.state.remove_pod_group(*key.split("/", 1))
            else:
                self.simulation.replace(None, group)
        for pod in changes.pods.values():
            self.simulation.put_pod(pod)
        return bool(changes.pods)


def _together(first: "CycleResult", second: "CycleResult") -> "CycleResult":
    """What two cycles of the same second have decided."""
    from msgspec.structs import replace

    return replace(
        second,
        binds=first.binds | second.binds,
        evicted=[*first.evicted, *second.evicted],
        decided=first.decided + second.decided,
    )


def _as_json(run: _SimulateRun, cycles: list[dict[str, Any]], explain: bool) -> dict[str, Any]:
    import msgspec

    from pumice.scheduler.topology.whereabouts import whereabouts

    simulation = run.simulation
    state, groups = simulation.state, simulation.pod_groups
    places = {
        key: whereabouts(job, state.network, state.nodes.row_of) for key, job in state.jobs.items()
    }
    return {
        "cycles": cycles,
        "podGroups": {
            key: {
                "phase": status.phase or "Pending",
                "conditions": msgspec.to_builtins(status.conditions or []),
            }
            | ({"job": run.jobs[key]} if key in run.jobs else {})
            | ({"network": place.details} if (place := places.get(key)) else {})
            for key, status in groups.items()
        },
        "pending": {
            key: {"reason": reason.reason, "message": reason.message, "summary": reason.summary}
            | ({"details": reason.details | {"numbers": reason.numbers}} if explain else {})
            for key, reason in simulation.pending.items()
        },
    }


def _write_text(run: _SimulateRun, cycles: list[dict[str, Any]], explain: bool) -> None:
    for number, cycle in enumerate(cycles, 1):
        write(paint(f"Cycle {number}", "bold"))
        rows = [(pod, node, "bound") for pod, node in cycle["binds"].items()]
        rows += [(pod, node, "waits for the node") for pod, node in cycle["pipelined"].items()]
        rows += [(pod, "-", "evicted") for pod in cycle["evicted"]]
        write(table(("pod", "node", "what"), rows) if rows else "nothing to do")
        write("")
    pending = run.simulation.pending
    if rows := _group_rows(run, pending):
        write(table(("podgroup", "phase", "why it waits"), rows))
    else:
        write("no PodGroups")
    if explain:
        for key, reason in pending.items():
            write(f"\n{plain(run.shown(f'{key}: {reason.reason}: {reason.summary}'))}")
            write(f"  {json_line(reason.details | {'numbers': reason.numbers})}")


def _group_rows(run: _SimulateRun, pending: "dict[str, Reason]") -> list[tuple[str, str, str]]:
    phases = {key: status.phase or "Pending" for key, status in run.simulation.pod_groups.items()}
    return [
        (
            f"{run.jobs[key]} (Job)" if key in run.jobs else key,
            phases.get(key, "-"),
            run.shown(pending[key].message) if key in pending else "",
        )
        for key in [*phases, *(key for key in pending if key not in phases)]
    ]
