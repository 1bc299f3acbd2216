"""The run of a trace: its jobs are submitted to a cluster in virtual time, and what happens is recorded.

The clock goes from one moment at which something happens to the next: a job arrives, pods end, or something is due. Equal input gives equal
records. The run ends when no job can change any more; jobs that never end, or that no node can hold, do not keep it going. It
ends, too, when pods are only evicted and made again.
"""

from collections.abc import Callable, Iterator, Set

from pumice.api.messages import counted
from pumice.api.meta import Raw, format_time
from pumice.api.pods import Pod
from pumice.plugins import Registry
from pumice.scheduler import Config
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.cluster import MOST_CYCLES, Ending, VirtualCluster
from pumice.traces.controlled_job import without_uids
from pumice.traces.jobs import PASSES
from pumice.traces.records import JobRecord, Past, Progress
from pumice.traces.sampling import PodKind, Sampler
from pumice.traces.stories import Stories
from pumice.traces.submission import Admitted, JobSubmissions, with_named
from pumice.traces.trace import Trace

_MICRO = 1_000_000


class TraceRun:
    """One run of a trace."""

    def __init__(
        self,
        trace: Trace,
        objects: ClusterObjects,
        config: Config,
        *,
        admit: Callable[[Raw], Admitted],
        registry: Registry,
        measure_time: Callable[[], float],
        admitted_pod: Callable[[Raw], Raw] = lambda pod: pod,
        not_measured: Set[str] = frozenset(),
    ) -> None:
        """Prepare a run.

        Args:
            trace: The jobs.
            objects: The cluster; what `with_named` adds need not be there.
            config: Configuration of the scheduler.
            admit: Admission of a new Job.
            registry: The job plugins.
            measure_time: The clock that measures cycles, in seconds.
            admitted_pod: A new pod as an API server stores it.
            not_measured: Resources of which nothing is recorded.

        Raises:
            UnreadableObjectError: A quantity cannot be read.
        """
        self._trace = trace
        self._submissions = JobSubmissions(admit)
        self._stories = Stories()
        self._cluster = cluster = VirtualCluster(
            with_named(trace, objects),
            config,
            zero=trace.zero,
            registry=registry,
            listener=self._stories,
            measure_time=measure_time,
            admitted=admitted_pod,
        )
        self._records = [JobRecord(job, number) for number, job in enumerate(trace.jobs)]
        kinds = [self._submissions.kind_of(job) for job in trace.jobs]
        self._kinds = kinds
        resources = {name for kind in kinds for task in kind.requests for name in task}
        self._sampler = Sampler(cluster.simulation, resources - not_measured)
        self._pod_kinds: dict[int, tuple[PodKind, ...]] = {}
        self._gangs: dict[str, tuple[PodKind, ...]] = {}
        self._names = cluster.simulation.state.nodes.names
        self._stories.rows = {name: row for row, name in enumerate(self._names)}
        self._next = 0
        self._stamp = 0

    def steps(self) -> Iterator[Progress]:
        """Run to the end, or from where an earlier call was left."""
        jobs, cluster = self._trace.jobs, self._cluster
        while (now := self._next_moment()) is not None:
            before = self._next
            while self._next < len(jobs) and jobs[self._next].submit <= now:
                self._submit(self._next)
                self._next += 1
            if cluster.advance(now) or self._next > before:
                self._sampler.take(now, self._gangs)
            unfinished, running = len(self._stories), self._stories.running
            yield Progress(now, self._next - unfinished, unfinished - running, running)

    def _next_moment(self) -> float | None:
        found = self._cluster.next_moment
        if self._cluster.is_in_circles:
            return None
        if self._next == len(self._trace.jobs):
            return found
        arrival = self._trace.jobs[self._next].submit
        return arrival if found is None else min(arrival, found)

    def _submit(self, number: int) -> None:
        record, kind = self._records[number], self._kinds[number]
        if kind.raw is None:
            record.outcome, record.reason = "Refused", "; ".join(kind.problems)
            return
        job = record.job
        record.requests = kind.requests
        raw = kind.named(job.name, self._created(job.submit))
        ending = Ending(job.duration, job.fails)
        submitted = self._cluster.submit(raw, ending, plain=kind.plain)
        self._stories.begin(submitted.key, record, kind.minimum, kind.tasks)
        known = self._pod_kinds.get(id(kind))
        if known is None:
            intern = self._cluster.simulation.state.shapes.intern
            shapes = [intern(Pod(spec=spec)) for spec in kind.specs]
            known = self._pod_kinds[id(kind)] = tuple(map(self._sampler.kind_of, shapes))
        self._gangs[submitted.group_key] = known

    def _created(self, submit: float) -> str:
        """When a Job was created. Of jobs that are submitted at the same moment each is a microsecond older than the next, since their order decides."""
        self._stamp = max(self._stamp + 1, round((self._trace.zero + submit) * _MICRO))
        seconds, rest = divmod(self._stamp, _MICRO)
        return f"{format_time(seconds)[:-1]}.{rest:06}Z"

    def past(self) -> Past:
        """What is known so far."""
        cluster = self._cluster
        pending = cluster.simulation.state.gangs.pending
        for key, record in self._stories.unfinished():
            job = cluster.jobs.jobs[key]
            reason = pending.get(job.group_key)
            record.reason = "" if reason is None else job.hindrance or without_uids(reason.summary)
        samples = self._sampler.samples
        return Past(
            jobs=self._records,
            samples=samples,
            nodes=list(self._names),
            capacity=self._sampler.capacity(),
            resources=self._sampler.resources,
            end=samples.moments[-1] if samples.moments else 0.0,
            cycles=cluster.cycles,
            decision_seconds=cluster.decision_seconds,
            is_whole=self._next_moment() is None and not cluster.is_in_circles,
            skipped=len(self._trace.skipped),
            is_endless=cluster.is_in_circles,
            remarks=self._remarks(),
        )

    def _remarks(self) -> list[str]:
        cluster, found = self._cluster, []
        if cluster.is_in_circles:
            found.append(
                "the run ends here: pods are evicted or made again without end, while no Job ends or arrives"
            )
        if cluster.restless:
            found.append(
                f"at {counted(cluster.restless, 'moment')} the scheduler had more to decide after {MOST_CYCLES:,} cycles; it was left at that"
            )
        if cluster.unsettled:
            found.append(
                f"of {counted(len(cluster.unsettled), 'Job')}, such as {min(cluster.unsettled)}, the controller had more to change "
                f"after {PASSES} passes; it was left at that, so pods may be missing"
            )
        return found
