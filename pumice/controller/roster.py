"""The roster: which pods the present incarnation of a Job has had, kept in the Job's status.

A pod that is gone leaves no trace of its own. So the status notes, in `controlledResources`:

* `pumice.dev/pods`: the pods that were seen. What the controller removes is taken out of the note by the
  write that precedes the removal. A pod that is in the note and does not exist was therefore removed by
  somebody else: evicted.
* `pumice.dev/succeeded`: the pods that succeeded. They count as succeeded also when they exist no longer,
  and are not made again.
* `pumice.dev/evicted`: evicted pods for which a policy has a `timeout`, each with the moment at which it was
  found missing, as `worker/3@2027-01-15T08:00:00Z`. An entry stays until a pod of that name runs.

A pod enters the note only after the watch showed it: a note written before the pod would turn a creation
that was never sent into an eviction. The note is written together with the counts that the pod changes, so
it costs no write of its own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.meta import format_time, parse_time
from pumice.api.pods import Pod
from pumice.controller import podsets
from pumice.controller.podsets import Names, PodKey

__all__ = ["EVICTED", "PODS", "SUCCEEDED", "Roster", "read", "version_of"]

PODS = "pumice.dev/pods"
SUCCEEDED = "pumice.dev/succeeded"
EVICTED = "pumice.dev/evicted"

_MOMENTS = 100
"""Moments of evictions that are told apart; later ones share the last, so that the note stays short."""


def version_of(pod: Pod) -> int:
    """Incarnation of the Job that a pod was made for."""
    text = pod.metadata.annotation(keys.JOB_VERSION)
    return int(text) if text.isascii() and text.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Roster:
    """The pods of a Job, those that exist and those that did.

    Attributes:
        names: Names and keys of its pods.
        version: Its incarnation.
        present: Its pods that exist, by key; without those whose names no task can have.
        missing: Pods that were evicted and have not been made anew, in order.
        lost: Pods that succeeded and no longer exist.
        waiting: Since when evicted pods do not run, where a policy waits for that.
    """

    names: Names
    version: int
    present: Mapping[PodKey, Pod]
    missing: tuple[PodKey, ...]
    lost: frozenset[PodKey]
    waiting: Mapping[PodKey, float]

    @property
    def lost_by_task(self) -> dict[str, int]:
        """Numbers of pods by task that succeeded and no longer exist."""
        return _by_task(self.lost)

    def lost_after(self, notes: Mapping[str, str]) -> dict[str, int]:
        """The same as soon as other notes are written."""
        return _by_task(podsets.read(notes.get(SUCCEEDED, ""), self.names) - self.present.keys())

    def living(
        self, leaving: Collection[str], evicted: Mapping[PodKey, float] | None = None
    ) -> dict[str, str]:
        """The notes of a Job that lives.

        Args:
            leaving: Names of pods that the controller is about to remove.
            evicted: Pods that were just found missing and for which a policy waits.
        """
        going = {self.names.key(name) for name in leaving}
        return self._noted(going.__contains__, {**self.waiting, **(evicted or {})})

    def without(self, replaced: Callable[[PodKey], bool]) -> dict[str, str]:
        """The notes of a Job that lives and some of whose pods are replaced."""
        return self._noted(replaced, self.waiting)

    def ended(self) -> dict[str, str]:
        """The notes of a Job whose pods are removed but for the finished ones."""
        return _texts({SUCCEEDED: podsets.write(self._succeeded(lambda _: False))})

    def _noted(
        self, removed: Callable[[PodKey], bool], waiting: Mapping[PodKey, float]
    ) -> dict[str, str]:
        had = [key for key in self.missing if not removed(key)]
        had += [
            key
            for key, pod in self.present.items()
            if self._is_current(pod) and not removed(key) and self.names.wants(key)
        ]
        still = {
            key: moment
            for key, moment in waiting.items()
            if not removed(key) and _waits(self.present.get(key))
        }
        return _texts(
            {
                PODS: podsets.write(had),
                SUCCEEDED: podsets.write(self._succeeded(removed)),
                EVICTED: _write_moments(still),
            }
        )

    def _is_current(self, pod: Pod) -> bool:
        """Whether the end of a pod would be an eviction: not if the controller itself removes it."""
        notes = pod.metadata.annotations or {}
        return not notes.get(keys.OUT_OF_SYNC) and (
            notes.get(keys.JOB_VERSION) == str(self.version) or version_of(pod) >= self.version
        )

    def _succeeded(self, removed: Callable[[PodKey], bool]) -> set[PodKey]:
        found = {
            key
            for key, pod in self.present.items()
            if pod.status.phase == "Succeeded"
            and self.names.wants(key)
            and not pod.metadata.annotation(keys.OUT_OF_SYNC)
        }
        return {key for key in found | self.lost if not removed(key)}


def read(job: Job, pods: Iterable[Pod], found: Iterable[str] = ()) -> Roster:
    """The roster of a Job.

    Args:
        job: The Job.
        pods: Its own pods.
        found: Names of further pods of it that exist.
    """
    names = Names(job)
    present: dict[PodKey, Pod] = {}
    for pod in pods:
        key = names.key(pod.metadata.name)
        if key is not None:
            present[key] = pod
    elsewhere = {names.key(name) for name in found}
    noted = job.status.controlled_resources or {}
    done = podsets.read(noted.get(SUCCEEDED, ""), names).difference(present, elsewhere)
    had = podsets.read(noted.get(PODS, ""), names).difference(present, elsewhere)
    return Roster(
        names=names,
        version=job.status.version,
        present=present,
        missing=tuple(sorted(had - done)),
        lost=frozenset(done),
        waiting=_read_moments(noted.get(EVICTED, ""), names),
    )


def _by_task(found: Iterable[PodKey]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for task, _ in found:
        numbers[task] = numbers.get(task, 0) + 1
    return numbers


def _waits(pod: Pod | None) -> bool:
    return pod is None or pod.status.phase in ("Pending", "")


def _write_moments(waiting: Mapping[PodKey, float]) -> str:
    groups: dict[float, list[PodKey]] = {}
    moments = sorted(set(waiting.values()))
    first = set(moments[:_MOMENTS])
    for key, moment in waiting.items():
        groups.setdefault(moment if moment in first else moments[-1], []).append(key)
    return " ".join(
        f"{entry}@{format_time(moment)}"
        for moment in sorted(groups)
        for entry in podsets.write_entries(groups[moment])
    )


def _read_moments(text: str, names: Names) -> dict[PodKey, float]:
    found: dict[PodKey, float] = {}
    for part in text.split():
        entry, _, moment = part.partition("@")
        since = parse_time(moment)
        if since is not None:
            found |= dict.fromkeys(podsets.read_entry(entry, names), since)
    return found


def _texts(notes: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in notes.items() if text}
