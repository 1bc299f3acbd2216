"""A cluster's past as a trace: `kubectl get jobs.batch.volcano.sh,podgroups,pods,nodes,queues -A -o json`.

Jobs, and gangs without a Job, are submitted at their creation. What still ran at the time of the dump runs for the duration that an
annotation names, and else never ends. What never started and names no duration is left out. Other pods that run are there from
the beginning. PriorityClasses that the dump lacks follow from its pods. Kinds that are not read are named.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api import kinds
from pumice.api.kinds import Kind
from pumice.api.messages import counted, listed
from pumice.api.meta import ObjectMeta, Raw
from pumice.api.nodes import PriorityClass, values_of
from pumice.api.raw import key_in, object_in, text_in
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.durations import ignored_durations
from pumice.traces.job_list import UTF_8_MARK, BadLineError, JobList, by_name
from pumice.traces.past_jobs import (
    gang_of,
    group_of_job,
    is_of_job,
    trace_job_of_gang,
    trace_job_of_job,
)
from pumice.traces.trace import LINES_LIMIT, Trace, TraceError, TraceJob

_OVER = {"Succeeded", "Failed"}
_STAY = {
    kinds.HYPER_NODE,
    kinds.NAMESPACE,
    kinds.NODE,
    kinds.POD,
    kinds.PRIORITY_CLASS,
    kinds.QUEUE,
}
"""Kinds of objects that are there from the beginning. What quotas and budgets count is that of the time of the dump."""
_NAMED = 200
"""Bytes of the list of kinds that are not read."""


def read_cluster_past(data: bytes) -> Trace:
    """Read a dump.

    Raises:
        TraceError: It is not a List of objects, or too many of them cannot be read.
    """
    try:
        dump = msgspec.json.decode(data.removeprefix(UTF_8_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"not JSON: {error}") from None
    items = dump.get("items") if isinstance(dump, dict) else None
    if not isinstance(items, list):
        raise TraceError("expected a List with items, as `kubectl get -o json` writes it")
    if len(items) > LINES_LIMIT:
        raise TraceError(f"more than {LINES_LIMIT:,} objects")
    return _Dump(items).trace()


class _Dump:
    """The objects of a dump, by what they are for a trace."""

    def __init__(self, items: list[Any]) -> None:
        self._found = JobList("object")
        self._others: list[tuple[int, Kind, Raw]] = []
        self._jobs: dict[str, tuple[int, Raw]] = {}
        self._groups: dict[str, tuple[int, Raw]] = {}
        self._pods: dict[str, list[tuple[int, Raw]]] = {}
        self._submitted: set[str] = set()
        self._objects = ClusterObjects()
        self._kept = {kind: kept for kind, kept in self._objects.by_kind().items() if kind in _STAY}
        not_read: Counter[str] = Counter()
        for place, each in enumerate(items, 1):
            if not isinstance(each, dict):
                self._found.lines += 1
                self._found.skip(place, "it is not a JSON object")
                continue
            kind = kinds.of_object(each)
            if kind == kinds.JOB:
                self._jobs[group_of_job(each)] = place, each
            elif kind == kinds.POD_GROUP:
                self._groups[key_in(each)] = place, each
            elif kind == kinds.POD:
                self._pods.setdefault(gang_of(each), []).append((place, each))
            elif kind in self._kept:
                self._others.append((place, kind, each))
            else:
                not_read[text_in(each, "kind")[:60] or "without a kind"] += 1
        if not_read:
            self._found.remarks.append(_left_out(not_read))

    def trace(self) -> Trace:
        """Jobs and objects."""
        for group, (place, each) in self._jobs.items():
            self._read(group, place, each, trace_job_of_job)
        for group, (place, each) in self._groups.items():
            if group not in self._jobs and not is_of_job(each):
                self._read(group, place, each, trace_job_of_gang)
        if remark := self._ignored_durations():
            self._found.remarks.append(remark)
        self._read_objects()
        objects, trace = self._objects, self._found.trace()
        objects.priority_classes += self._lacking_classes(trace.jobs, objects)
        zero = trace.jobs[0].submit if trace.jobs else trace.zero
        trace.objects, trace.zero = objects, zero
        trace.jobs = [
            replace(
                job,
                submit=job.submit - zero,
                scheduled=None if job.scheduled is None else job.scheduled - zero,
            )
            for job in trace.jobs
        ]
        return trace

    def _read(
        self,
        group: str,
        place: int,
        each: Raw,
        job_of: Callable[[Raw, list[Raw]], TraceJob | None],
    ) -> None:
        self._found.lines += 1
        try:
            job = job_of(each, [pod for _, pod in self._pods.get(group, ())])
            if job is None:
                why = f"{key_in(each)}: it never started or its end is not known, and no annotation says how long it runs"
                self._found.skip(place, why, is_bad=False)
            else:
                self._found.add(job, (by_name(job.name), job.namespace))
                self._submitted.add(group)
        except BadLineError as error:
            self._found.skip(place, f"{key_in(each)}: {error}")

    def _ignored_durations(self) -> str:
        """A sentence about annotations that say no duration."""
        named = [("PodGroup", group, each) for group, (_, each) in self._groups.items()]
        named += [("pod", group, pod) for group, pods in self._pods.items() for _, pod in pods]
        others = [
            (f"{kind} {key_in(each)}", object_in(each, "metadata").get("annotations"))
            for kind, group, each in named
            if group and group not in self._jobs
        ]
        return ignored_durations((job for _, job in self._jobs.values()), others)

    def _read_objects(self) -> None:
        """Read nodes, queues and what else stays, and the pods that run of no gang that is submitted."""
        for place, kind, each in (*self._others, *self._loose_pods()):
            struct, known = self._kept[kind]
            if kind == kinds.QUEUE:  # it took these Jobs, whatever it is now
                each = {name: part for name, part in each.items() if name != "status"}
            self._found.lines += 1
            try:
                known.append(msgspec.convert(each, struct))
            except msgspec.ValidationError as error:
                self._found.skip(place, f"{kind.kind} {key_in(each)}: {error}")

    def _loose_pods(self) -> Iterator[tuple[int, Kind, Raw]]:
        """Pods of no gang that is submitted, that are on a node and not over."""
        members = 0
        for group, pods in self._pods.items():
            if group not in self._submitted:
                for place, each in pods:
                    is_over = text_in(object_in(each, "status"), "phase") in _OVER
                    if text_in(object_in(each, "spec"), "nodeName") and not is_over:
                        members += bool(group)
                        yield place, kinds.POD, each
        if members:
            self._found.remarks.append(
                f"{counted(members, 'pod')} of Jobs that are not in the dump, or were left out: they stay on their nodes"
            )

    def _lacking_classes(
        self, jobs: Iterable[TraceJob], objects: ClusterObjects
    ) -> list[PriorityClass]:
        """PriorityClasses that jobs name and the dump lacks, with the values that pods have; 0 where no pod says."""
        known = values_of(objects.priority_classes)
        values = {job.priority: 0 for job in jobs if isinstance(job.priority, str)}
        for pods in self._pods.values():
            for _, pod in pods:
                spec = object_in(pod, "spec")
                value, name = spec.get("priority"), text_in(spec, "priorityClassName")
                if name in values and isinstance(value, int):
                    values[name] = value
        return [
            PriorityClass(metadata=ObjectMeta(name=name), value=value)
            for name, value in sorted(values.items())
            if name not in known
        ]


def _left_out(kinds_found: Counter[str]) -> str:
    """The sentence about objects of kinds that are not read."""
    shown = listed((f"{count} {kind}" for kind, count in sorted(kinds_found.items())), most=_NAMED)
    return (
        f"left out {counted(kinds_found.total(), 'object')} of kinds that are not read here ({shown}); "
        "quotas, budgets, volumes and RuntimeClasses are read with --state"
    )
