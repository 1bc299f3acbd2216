"""Records of the pods of a Job's current incarnation, kept in the Job's status.

A deleted pod leaves no trace. So the status records them in `controlledResources`:

* `pumice.dev/pods`: the pods that were seen. What the controller removes is taken out of the note by the
  write that precedes the removal. A pod that is in the note and does not exist was therefore not removed by
  the controller: it was evicted.
* `pumice.dev/succeeded`: the pods that succeeded before they were removed. They count as succeeded also when they exist
  no longer, and are not created again. A pod that exits 0 because it is being removed has not succeeded: its containers
  must have ended before the removal began.
* `pumice.dev/evicted`: evicted pods for which a policy has a `timeout`, each with the moment at which it was
  found missing, as `worker/3@2027-01-15T08:00:00Z`, or failed. An entry stays until a pod of that name runs. Pods that a
  restart replaces are among them if a wider action follows (`escalation`).
* `pumice.dev/completed`: tasks that are complete and for which there is a policy that has not acted yet, each with the
  moment at which its last pod ended, as `ps@2027-01-15T08:00:00Z`. Its pods may be removed meanwhile.

A pod enters the note only after the watch showed it: a note written before the pod would turn a creation
that was never sent into an eviction. The note is written together with the counts that the pod changes, so
it costs no write of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.meta import format_time, number_in, parse_time
from pumice.api.pods import Pod
from pumice.controller.jobs import podsets
from pumice.controller.jobs.podsets import PodNames

PODS = "pumice.dev/pods"
SUCCEEDED = "pumice.dev/succeeded"
EVICTED = "pumice.dev/evicted"
COMPLETED = "pumice.dev/completed"

_MOMENTS = 100
"""Maximum number of distinct moments in the note. Later evictions share the last one, so that the note stays short."""

LONGEST = 65_536
"""Length of that note above which fewer moments are distinguished."""


_LONGEST_VERSION = 32
"""Characters of the longest incarnation; longer texts are none."""


def version_of(pod: Pod) -> int:
    """The incarnation of the Job for which a pod was created."""
    text = pod.metadata.annotation(keys.JOB_VERSION)
    return _version(text) if len(text) <= _LONGEST_VERSION else 0


@lru_cache(64)  # all pods of a Job have one of a few
def _version(text: str) -> int:
    return number_in(text) or 0


class JobPods(msgspec.Struct, frozen=True):
    """The pods of a Job by name, both existing and former ones.

    Attributes:
        names: Parses the names of its pods.
        version: Its incarnation.
        notes: `controlledResources` as stored.
        present: Its pods that exist.
        elsewhere: Names of further ones that exist, although the watch does not show them.
        had: Pods that are recorded as seen.
        noted: Pods that are recorded as succeeded.
        done: These, and pods that succeeded and are removed since the record was written.
        missing: Pods that were evicted and have not been created again, in order.
        failed: Those of them that had failed by themselves since the notes were written.
        lost: Pods that succeeded and no longer exist.
        lost_by_task: Their numbers by task.
        waiting: Since when evicted pods do not run, if a policy has a timeout.
        awaited: Those of them that a restart removed and that have not been created again.
        completed: Since when tasks are complete, if a policy has a timeout.
    """

    names: PodNames
    version: int
    notes: Mapping[str, str]
    present: Mapping[str, Pod]
    elsewhere: AbstractSet[str]
    had: AbstractSet[str]
    noted: AbstractSet[str]
    done: AbstractSet[str]
    missing: tuple[str, ...]
    failed: Mapping[str, Pod]
    lost: frozenset[str]
    lost_by_task: Mapping[str, int]
    waiting: Mapping[str, float]
    awaited: tuple[str, ...]
    completed: Mapping[str, float]

    def lost_after(self, notes: Mapping[str, str]) -> Mapping[str, int]:
        """`lost_by_task` as it will be after other notes are written."""
        text = notes.get(SUCCEEDED, "")
        if text == self.notes.get(SUCCEEDED, "") and self.done == self.noted:
            return self.lost_by_task
        return self.names.numbers(podsets.read(text, self.names).difference(self.present))

    def running(
        self,
        removed: Callable[[str], bool],
        waiting: Mapping[str, float],
        completed: Mapping[str, float],
        *,
        replaced: bool = False,
    ) -> dict[str, str]:
        """The notes of a running Job.

        Args:
            removed: Whether the controller is about to remove a pod.
            waiting: Pods that do not run from now on and for which a policy has a timeout, with their moments.
            completed: Since when tasks are complete, if a policy has a timeout.
            replaced: Whether removed pods are made again, so that policies go on waiting for them.
        """
        still = {
            name: moment
            for name, moment in self.waiting.items()
            if (replaced if removed(name) else self.waits(name))
        }
        return self._noted(removed, {**still, **waiting}, completed)

    def waits(self, name: str) -> bool:
        """True if a pod does not run again yet after its removal: none of that name exists, or it is pending.

        A pod that a restart removes may take its time to end.
        """
        pod = self.present.get(name)
        if pod is None or pod.status.phase in ("Pending", ""):
            return True
        leaves = pod.metadata.deletion_timestamp is not None
        return leaves and bool(pod.metadata.annotation(keys.OUT_OF_SYNC))

    def ended(self) -> dict[str, str]:
        """The notes of a Job of which only finished pods remain."""
        succeeded = self._succeeded(lambda _: False)
        return _texts({SUCCEEDED: self._text(SUCCEEDED, self.noted, succeeded)})

    def _noted(
        self,
        removed: Callable[[str], bool],
        waiting: Mapping[str, float],
        completed: Mapping[str, float],
    ) -> dict[str, str]:
        hidden = self.elsewhere & self.had  # without them, their later eviction would not be seen
        had = {name for name in (*self.missing, *hidden) if not removed(name)}
        had |= {
            name
            for name, pod in self.present.items()
            if self._is_current(pod) and not removed(name) and self.wants(name)
        }
        succeeded = self._succeeded(removed)
        if completed:
            sizes = self.names.numbers(succeeded)
            completed = {
                task: moment
                for task, moment in completed.items()
                if sizes.get(task, 0) >= self.names.size(task)
            }
        return _texts(
            {
                PODS: self._text(PODS, self.had, had),
                SUCCEEDED: self._text(SUCCEEDED, self.noted, succeeded),
                EVICTED: _write_moments(waiting, self.names),
                COMPLETED: " ".join(
                    f"{task}@{format_time(moment)}" for task, moment in sorted(completed.items())
                ),
            }
        )

    def _text(self, note: str, stored: AbstractSet[str], pods: AbstractSet[str]) -> str:
        """The text of a set. It is cached, because writing takes time for many pods and sets rarely change."""
        text = self.notes.get(note, "")
        same = pods == stored and podsets.fits(text, self.names)
        return text if same else podsets.write(pods, self.names)

    def wants(self, name: str) -> bool:
        """Whether the Job wants a pod of that name."""
        return name in self.had or self.names.wants(name)

    def surplus(self) -> set[str]:
        """Names of pods that exist and that the Job does not want."""
        return {name for name in self.present.keys() - self.had if not self.names.wants(name)}

    def _is_current(self, pod: Pod) -> bool:
        """True if the loss of a pod would be an eviction, and not a removal by the controller."""
        notes = pod.metadata.annotations or {}
        if notes.get(keys.OUT_OF_SYNC):
            return False
        return not self.version or version_of(pod) >= self.version

    def has_succeeded(self, pod: Pod) -> bool:
        """True if a pod has succeeded; a recorded success stays true after the pod's removal."""
        return pod.status.phase == "Succeeded" and (
            pod.metadata.deletion_timestamp is None or pod.metadata.name in self.done
        )

    def _succeeded(self, removed: Callable[[str], bool]) -> set[str]:
        found = {
            name
            for name, pod in self.present.items()
            if self.has_succeeded(pod)
            and self.wants(name)
            and not pod.metadata.annotation(keys.OUT_OF_SYNC)
        }
        found |= self.lost
        return {name for name in found if not removed(name)}


def read(
    job: Job,
    pods: Iterable[Pod],
    now: float,
    found: Iterable[str] = (),
    ended: Iterable[Pod] = (),
) -> JobPods:
    """The pods of a Job.

    Args:
        job: The Job.
        pods: Its own pods.
        now: The current time in UNIX seconds; later times in notes are ignored.
        found: Names of further pods of it that exist.
        ended: Pods of it that had succeeded or failed by themselves and were removed since the notes were written, or
            are being removed.
    """
    names = PodNames(job)
    version = job.status.version
    notes = job.status.controlled_resources or {}
    present = {pod.metadata.name: pod for pod in pods}
    elsewhere = set(found)
    noted = podsets.read(notes.get(SUCCEEDED, ""), names)
    removed = {pod.metadata.name: pod for pod in ended if version_of(pod) >= version}
    done = noted | {
        name
        for name, pod in removed.items()
        if pod.status.phase == "Succeeded" and names.wants(name)
    }
    had = podsets.read(notes.get(PODS, ""), names)
    missing = had.difference(present, elsewhere, done)
    waiting = _read_moments(notes.get(EVICTED, ""), names, now)
    lost = frozenset(done.difference(present, elsewhere))
    return JobPods(
        names=names,
        version=version,
        notes=notes,
        present=present,
        elsewhere=elsewhere,
        had=had,
        noted=noted,
        done=done,
        missing=tuple(sorted(missing, key=lambda name: names.key(name) or ("", 0))),
        failed={name: removed[name] for name in missing if name in removed},
        lost=lost,
        lost_by_task=names.numbers(lost),
        waiting=waiting,
        awaited=tuple(sorted(waiting.keys() - present.keys() - elsewhere - had - done)),
        completed=_read_completed(notes.get(COMPLETED, ""), names, now),
    )


def _write_moments(waiting: Mapping[str, float], names: PodNames) -> str:
    if not waiting:
        return ""
    moments = sorted(set(waiting.values()))
    most = _MOMENTS
    while len(text := _moments_text(waiting, moments, most, names)) > LONGEST and most > 1:
        most //= 2
    return text


def _moments_text(
    waiting: Mapping[str, float], moments: Sequence[float], most: int, names: PodNames
) -> str:
    groups: dict[float, list[str]] = {}
    first = set(moments[:most])
    for name, moment in waiting.items():
        groups.setdefault(moment if moment in first else moments[-1], []).append(name)
    return " ".join(
        f"{entry}@{format_time(moment)}"
        for moment in sorted(groups)
        for entry in podsets.write_entries(groups[moment], names)
    )


def _read_moments(text: str, names: PodNames, now: float) -> dict[str, float]:
    found: dict[str, float] = {}
    entries = podsets.Entries(names)
    for part in text.split():
        entry, _, moment = part.partition("@")
        if (since := _moment(moment, now)) is not None:
            found |= dict.fromkeys(names.names(*entries.read(entry)), since)
    return found


def _read_completed(text: str, names: PodNames, now: float) -> dict[str, float]:
    parts = (part.partition("@") for part in text.split())
    found = {task: _moment(moment, now) for task, _, moment in parts if names.size(task)}
    return {task: since for task, since in found.items() if since is not None}


def _moment(text: str, now: float) -> float | None:
    """A moment in a note. Users may write moments in the future, or outside the range of clocks."""
    moment = parse_time(text)
    return min(moment, now) if moment is not None and moment >= 0 else None


def _texts(notes: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in notes.items() if text}
