"""What happens to the jobs of a trace, noted as it happens."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pumice.api import keys
from pumice.api.pods import Pod
from pumice.traces.controlled_job import ControlledJob, job_of
from pumice.traces.records import JobRecord, PodRuns, RunEnd

_Run = tuple[int, float, float | None, RunEnd, int]
"""Node, start, end, way of ending, and task of one pod's run."""


@dataclass(slots=True)
class _Story:
    """A job that is not over.

    Attributes:
        record: Its record.
        minimum: Pods that must run together.
        tasks: Indexes of its tasks, by name.
        runs: The newest run of each pod that exists, by name.
        past: Number of runs of pods that are gone or were made again.
        running: Number of pods that run or have succeeded.
        is_up: Whether at least the minimum of pods does.
        is_short: Whether it is not because pods have failed: the gang is broken if they are made again.
        lost: Seconds of pods that are gone and whose work was thrown away, by task.
    """

    record: JobRecord
    minimum: int
    tasks: Mapping[str, int]
    runs: dict[str, _Run] = field(default_factory=dict)
    past: dict[_Run, int] = field(default_factory=dict)
    running: int = 0
    is_up: bool = False
    is_short: bool = False
    lost: dict[int, float] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether at least the minimum of pods runs or has succeeded, and one runs."""
        return self.is_up and any(run[2] is None for run in self.runs.values())

    def lose(self, task: int, seconds: float) -> None:
        """What a pod has done is thrown away."""
        self.lost[task] = self.lost.get(task, 0.0) + seconds

    def thrown_away(self) -> dict[int, float]:
        """Seconds of pods whose work is lost, with those that have failed and were not made again."""
        found = dict(self.lost)
        for _, start, end, how, task in self.runs.values():
            if how == "failed" and end is not None:
                found[task] = found.get(task, 0.0) + end - start
        return found

    def told(self) -> list[PodRuns]:
        """Its runs, in the order of their starts and nodes."""
        every = dict(self.past)
        for run in self.runs.values():
            every[run] = every.get(run, 0) + 1
        ordered = sorted(
            every.items(), key=lambda each: (each[0][1], each[0][0], each[0][2] or 0.0, each[0][4])
        )
        return [
            PodRuns(node, pods, start, end, how, task)
            for (node, start, end, how, task), pods in ordered
        ]


class Stories:
    """The stories of all jobs, as a listener of the cluster.

    Attributes:
        rows: Indexes of the nodes, by name.
        running: Number of jobs of which at least the minimum of pods runs.
    """

    def __init__(self) -> None:
        """Begin without jobs."""
        self.rows: dict[str, int] = {}
        self._stories: dict[str, _Story] = {}
        self.running = 0

    def __len__(self) -> int:
        """Number of jobs that are not over."""
        return len(self._stories)

    def begin(self, key: str, record: JobRecord, minimum: int, tasks: Mapping[str, int]) -> None:
        """A job is submitted.

        Args:
            key: `namespace/name` of its Job.
            record: Its record.
            minimum: Pods that must run together.
            tasks: Indexes of its tasks, by name.
        """
        record.outcome = "Waiting"
        self._stories[key] = _Story(record, minimum, tasks)

    def unfinished(self) -> Iterator[tuple[str, JobRecord]]:
        """Jobs that are not over, by key, with what is known of them now."""
        for key, story in self._stories.items():
            record = story.record
            record.runs = story.told()
            record.lost = story.thrown_away()
            record.outcome = "Running" if story.is_running else "Waiting"
            yield key, record

    def started(self, pods: Iterable[Pod], now: float) -> None:
        """Pods run from now on."""
        touched: dict[str, _Story] = {}
        for pod in pods:
            key = job_of(pod)
            story = self._stories.get(key)
            if story is None:
                continue
            touched[key] = story
            story.runs[pod.metadata.name] = (
                self.rows.get(pod.spec.node_name, -1), now, None, "running",
                story.tasks.get(pod.metadata.label(keys.TASK_SPEC), 0),
            )  # fmt: skip
            story.running += 1
        for story in touched.values():
            if story.is_up or story.running < story.minimum:
                continue
            story.is_up, story.is_short = True, False
            self.running += 1
            if story.record.start is None:
                story.record.start = now

    def ended(self, pods: Iterable[Pod], now: float, *, failed: bool) -> None:
        """Pods have ended by themselves; those that succeeded still count as having run."""
        touched: dict[str, _Story] = {}
        for pod in pods:
            story = self._stories.get(job_of(pod))
            run = story.runs.get(pod.metadata.name) if story is not None else None
            if story is None or run is None:
                continue
            story.runs[pod.metadata.name] = (
                run[0], run[1], now, "failed" if failed else "completed", run[4]
            )  # fmt: skip
            if failed:
                story.running -= 1
                touched[job_of(pod)] = story
        for story in touched.values():
            if story.is_up and story.running < story.minimum:
                story.is_up, story.is_short = False, True
                self.running -= 1

    def evicted(self, pods: Iterable[Pod], now: float) -> None:
        """Pods were evicted."""
        pods = list(pods)
        for pod in pods:
            if (story := self._stories.get(job_of(pod))) is not None:
                story.record.evictions += 1
        self.removed(pods, now)

    def removed(self, pods: Iterable[Pod], now: float) -> None:
        """Pods are gone, and what they have done is thrown away."""
        touched: dict[str, _Story] = {}
        for pod in pods:
            key = job_of(pod)
            story = self._stories.get(key)
            run = story.runs.pop(pod.metadata.name, None) if story is not None else None
            if story is None or run is None:
                continue
            touched[key] = story
            node, start, end, how, task = run
            if end is None:
                end, how = now, "evicted"
            run = node, start, end, how, task
            story.past[run] = story.past.get(run, 0) + 1
            story.lose(task, end - start)
            story.running -= how != "failed"
        for story in touched.values():
            if story.is_short or (story.is_up and story.running < story.minimum):
                story.record.broken += 1
                self.running -= story.is_up
                story.is_up = story.is_short = False

    def finished(self, job: ControlledJob, now: float) -> None:
        """A Job is over."""
        story = self._stories.pop(job.key, None)
        if story is None:
            return
        record, is_completed = story.record, job.phase == "Completed"
        self.running -= story.is_up
        for name, (node, start, end, _, task) in story.runs.items():
            if end is None:
                story.runs[name] = (node, start, now, "evicted", task)
                if not is_completed:
                    story.lose(task, now - start)
        record.lost = story.thrown_away() if is_completed else story.lost
        record.runs = story.told()
        record.end = now
        record.outcome = "Completed" if is_completed else "Failed"
        record.reason = "" if is_completed else job.message
