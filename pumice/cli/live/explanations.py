"""Data of `pumice explain` about a gang, a Job, a pod or a queue; `explanation_text` formats it.

Numbers come from a scheduling cycle over the objects that were read. If the user may not read nodes, the numbers are
left out, and the scheduler's message on the PodGroup is used.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.api.messages import listed
from pumice.api.meta import controller_of, parse_time, version_number
from pumice.api.names import pod_group_name, pod_name
from pumice.api.not_here_yet import sentences, uses_in_job, uses_in_pod
from pumice.api.podgroups import PodGroup, PodGroupCondition
from pumice.api.pods import Pod
from pumice.api.quantities import QuantityError, format_milli, parse_milli
from pumice.api.queues import Queue
from pumice.cli.live.explanation_text import current_condition, is_waiting, sentence
from pumice.cli.live.failed_pods import attempts_used, failures, last_action, why_of
from pumice.cli.live.group_details import of_group, of_pods
from pumice.cli.live.log_lines import position
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Figures
from pumice.scheduler.advice import Advice, advise
from pumice.scheduler.plugins.fairshare import NamespaceShares
from pumice.scheduler.results import OTHER_SCHEDULER, CycleFailedError
from pumice.scheduler.simulate import Simulation, UnreadableObjectError

_NOT_STARTED = ("", "Pending", "Inqueue")
_NEXT = "it fits now; the next scheduling cycle places it"
_ENTERS = "the next scheduling cycle lets it into its queue"

Explanation = dict[str, Any]

Simulate = Callable[[ReadableCluster], Simulation]
"""Makes a simulation of the objects.

Raises:
    UnreadableObjectError: A quantity cannot be read.
"""


def of_job(job: Job, seen: ReadableCluster, simulate: Simulate, now: float) -> Explanation:
    """A Job: its state, its gang, its pods and its events."""
    namespace, name = job.metadata.namespace, job.metadata.name
    group = seen.group(namespace, pod_group_name(name, job.metadata.uid))
    pods = [
        pod
        for pod in seen.objects.pods
        if pod.metadata.namespace == namespace and pod.metadata.label(keys.JOB_NAME) == name
    ]
    pods.sort(key=position)
    uids = {job.metadata.uid, *(pod.metadata.uid for pod in pods), *_evicted(job, seen.events)}
    if group is not None:
        uids.add(group.metadata.uid)
    events = events_about(seen.events, uids)
    return {
        "job": f"{namespace}/{name}",
        "phase": job.status.state.phase,
        "waiting": is_waiting(job),
        "message": sentence(job, group, pods),
        "notHereYet": sentences(uses_in_job(job)),
        "podGroup": of_group(group, pods, seen),
        **_gang(group, pods, seen, simulate, now),
        "failures": failures(pods),
        "attempts": attempts_used(job),
        "lastAction": last_action(events),
        "pods": of_pods(pods, group),
        "events": events,
        "notAllowed": seen.forbidden,
    }


def of_pod(pod: Pod, seen: ReadableCluster, simulate: Simulate, now: float) -> Explanation:
    """A pod: its node, or why it has none; its gang."""
    key = pod.metadata.key
    name = pod.group
    group = seen.group(pod.metadata.namespace, name) if name else None
    siblings = [each for each in seen.objects.pods if name and each.group_key == pod.group_key]
    events = events_about(seen.events, {pod.metadata.uid})
    told = next(
        each for each in of_pods([*siblings, pod], group) if each["name"] == pod.metadata.name
    )
    if pod.spec.node_name:
        message = f"Pod {key} is on node {pod.spec.node_name} ({pod.status.phase or 'Pending'})"
        why = why_of(pod)
        message += why and f": {why}"
    elif told["message"]:
        message = f"Pod {key} waits: {told['message']}"
    elif name and group is None:
        message = f"Pod {key} waits: PodGroup {pod.group_key} does not exist"
    elif name:
        message = f"Pod {key} waits for its gang {pod.group_key}"
    elif warnings := [each["message"] for each in events if each["type"] == "Warning"]:
        message = f"Pod {key} waits: {warnings[-1]}"
    else:
        message = (
            f"Pod {key} waits: no scheduler has said why (scheduler {pod.spec.scheduler_name})"
        )
    waits = not pod.spec.node_name
    return {
        "pod": key,
        "waiting": waits,
        "message": message,
        "node": pod.spec.node_name,
        "nominatedNode": pod.status.nominated_node_name,
        "notHereYet": sentences(uses_in_pod(pod)),
        "podGroup": of_group(group, siblings, seen),
        **(_gang(group, siblings, seen, simulate, now) if waits else _no_numbers()),
        "events": events,
        "notAllowed": seen.forbidden,
    }


def of_queue(
    queue: Queue,
    seen: ReadableCluster,
    figures: Figures,
    gangs: Mapping[str, Explanation] | None = None,
) -> Explanation:
    """A queue: its state, its resources, and its waiting gangs in order.

    Args:
        queue: The queue.
        seen: The cluster.
        figures: The result of a cycle on it.
        gangs: Waiting gangs with their positions; None to determine them.
    """
    name, spec = queue.metadata.name, queue.spec
    found = figures.queues.get(name)
    columns = {
        "used": found.held if found else {},
        "asked": found.asked if found else {},
        "guarantee": _amounts(spec.guarantee.resource if spec.guarantee else None),
        "deserved": (found.deserved if found else None) or _amounts(spec.deserved),
        "capability": _amounts(spec.capability),
    }
    resources = sorted({resource for each in columns.values() for resource in each} - {"pods"})
    gangs = positioned_gangs(seen, figures) if gangs is None else gangs
    waiting = [each for each in gangs.values() if each["queue"] == name]
    waiting.sort(key=lambda each: (each["position"] or len(waiting), each["podGroup"]))
    state = queue.status.state or "Open"
    message = f"Queue {name} is {state}; {_counted(len(waiting))} waiting"
    away = found.away if found else {}
    if amounts := [f"{format_milli(away[each])} {each}" for each in resources if each in away]:
        message += f"; on nodes that are not ready its pods hold {listed(amounts)}"
    return {
        "queue": name,
        "state": state,
        "message": message,
        "parent": spec.parent,
        "resources": {
            resource: {
                column: format_milli(amounts[resource]) if resource in amounts else None
                for column, amounts in columns.items()
            }
            for resource in resources
        },
        "notEnforced": found.not_enforced if found else "",
        "namespaces": _namespaces(found.namespaces if found else None),
        "waiting": waiting,
        "notComputed": figures.error,
        "leftOut": figures.not_counted,
        "notAllowed": seen.forbidden,
    }


def _namespaces(found: NamespaceShares | None) -> Explanation | None:
    """What namespaces of a queue have used, if that decides about their order."""
    if found is None:
        return None
    names = ("usedHours", "holds", "waitsFor", "share")
    rows = {
        namespace: dict(zip(names, (round(used, 2), *rest), strict=True))
        for namespace, (used, *rest) in found.rows.items()
    }
    return {"resource": found.resource, "byNamespace": rows}


def waiting_gangs(seen: ReadableCluster, figures: Figures) -> list[Explanation]:
    """Waiting gangs by namespace and name; those of all namespaces if the user asked for all."""
    pending = figures.pending
    found = []
    for group in seen.objects.pod_groups:
        meta = group.metadata
        key = meta.key
        has_not_started = group.status.phase in _NOT_STARTED
        if (seen.namespace or meta.namespace) != meta.namespace or not (
            key in pending or has_not_started
        ):
            continue
        reason = pending.get(key)
        condition = current_condition(group)
        said = condition.message if condition and condition.type != "Scheduled" else ""
        if condition is not None and condition.reason == OTHER_SCHEDULER:
            reason, why = None, said  # the scheduler alone knows which pods it places
        elif unread := figures.left_out.get(f"PodGroup/{key}"):
            reason, why = None, unread
        elif reason is not None:
            why = reason.summary
        else:
            why = _NEXT if figures.is_known else said or "no scheduler has said why"
        owner = controller_of(meta)
        found.append(
            {
                "podGroup": key,
                "owner": f"{owner.kind}/{owner.name}" if owner else None,
                "queue": group.spec.queue or keys.DEFAULT_QUEUE,
                "phase": group.status.phase or "Pending",
                "minMember": group.spec.min_member,
                "summary": why,
                "message": reason.message if reason else said,
                "numbers": reason.numbers if reason else {},
            }
        )
    return sorted(found, key=lambda each: str(each["podGroup"]))


def positioned_gangs(seen: ReadableCluster, figures: Figures) -> dict[str, Explanation]:
    """Waiting gangs by `namespace/name`, each with its position in its queue.

    An explanation has the keys of `waiting_gangs`, and `position` and `gangsWaiting`, which are None if the user may not
    read the objects that determine the order.
    """
    # The gangs of a queue are in all namespaces.
    everywhere = msgspec.structs.replace(seen, namespace=None)
    gangs = {str(each["podGroup"]): each for each in waiting_gangs(everywhere, figures)}
    for gang in gangs.values():
        gang |= {"position": None, "gangsWaiting": None}
    for line in figures.lines.values():
        waiting = [gangs[key] for key in line if key in gangs]
        for number, gang in enumerate(waiting, 1):
            gang |= {"position": number, "gangsWaiting": len(waiting)}
    return gangs


def _gang(
    group: PodGroup | None,
    pods: Sequence[Pod],
    seen: ReadableCluster,
    simulate: Simulate,
    now: float,
) -> Explanation:
    """Counts of a gang that has pods without a node."""
    waits = any(not pod.spec.node_name for pod in pods)
    if group is None or not (waits or group.status.phase in _NOT_STARTED) or not seen.sees_cluster:
        return _no_numbers()
    condition = current_condition(group)
    if condition is not None and condition.reason == OTHER_SCHEDULER:
        return _no_numbers() | {"summary": condition.message, "fits": False}
    try:
        simulation = simulate(seen)
        key = f"PodGroup/{group.metadata.key}"
        if why := simulation.left_out.get(key):
            return _no_numbers() | {"notComputed": why}
        advice = advise(simulation, seen.objects, group, now, other_queues=seen.sees_queues)
    except (UnreadableObjectError, CycleFailedError) as error:
        return _no_numbers() | {"notComputed": str(error)}
    summary = advice.reason.summary if advice.reason else ""
    return {
        "summary": (_ENTERS if advice.enters else _NEXT) if advice.fits else summary,
        "numbers": advice.reason.numbers if advice.reason else {},
        "fits": advice.fits,
        "enters": advice.enters,
        "ahead": list(advice.ahead),
        "enough": [{"text": text, "change": change} for text, change in advice.enough],
        "otherReason": _differs(condition, advice, now),
        "notComputed": None,
    }


_SETTLED = 30.0
"""Seconds after which a scheduler has placed what fits."""


def _differs(said: PodGroupCondition | None, advice: Advice, now: float) -> bool:
    """Whether the scheduler gives another reason than the cycle here, as one with another configuration does."""
    if said is None or said.type != "Unschedulable" or said.status != "True":
        return False
    if advice.reason is None or advice.fits:
        return now - (parse_time(said.last_transition_time) or now) > _SETTLED
    return _first_words(said.message) != _first_words(advice.reason.message)


def _first_words(message: str) -> str:
    """What kind of reason a message gives: its words before numbers and names."""
    return re.sub(r"[\d/]+", "", message.partition(":")[0]).strip()


def _no_numbers() -> Explanation:
    return {
        "summary": "",
        "numbers": {},
        "fits": None,
        "enters": False,
        "ahead": [],
        "enough": [],
        "otherReason": False,
        "notComputed": None,
    }


def events_about(events: Sequence[Explanation], uids: set[str]) -> list[Explanation]:
    """Events about objects, oldest first: times have whole seconds, and within one the resourceVersion decides."""
    told = []
    for event in sorted(events, key=_written):
        about = event.get("involvedObject") or {}
        if about.get("uid") in uids:
            told.append(
                {
                    "time": event.get("lastTimestamp") or event.get("eventTime") or "",
                    "type": event.get("type", ""),
                    "object": f"{about.get('kind', '')}/{about.get('name', '')}",
                    "reason": event.get("reason", ""),
                    "message": event.get("message", ""),
                    "count": event.get("count", 1),
                }
            )
    return sorted(told, key=lambda each: str(each["time"]))


_EVICTIONS = ("Preempted", "Evict")
"""Reasons of events of pods that the scheduler evicts."""


def _evicted(job: Job, events: Sequence[Explanation]) -> Iterator[str]:
    """The uids of a Job's pods that were evicted, as events say; pods of the same names may be there again."""
    starts = {pod_name(job.metadata.name, task.name or "", 0)[:-1] for task in job.tasks}
    since = parse_time(job.metadata.creation_timestamp) or 0.0
    for event in events:
        about = event.get("involvedObject") or {}
        if event.get("reason") not in _EVICTIONS or about.get("kind") != "Pod":
            continue
        if about.get("namespace") != job.metadata.namespace:
            continue
        name = str(about.get("name", ""))
        moment = parse_time(event.get("lastTimestamp") or event.get("eventTime"))
        index = name.rpartition("-")[2]
        is_of_job = name.removesuffix(index) in starts
        if is_of_job and index.isdecimal() and (moment or 0.0) >= since:
            yield str(about.get("uid", ""))


def _written(event: Explanation) -> int:
    return version_number(str((event.get("metadata") or {}).get("resourceVersion") or ""))


def _amounts(resources: Mapping[str, str | int] | None) -> dict[str, int]:
    found = {}
    for name, value in (resources or {}).items():
        with suppress(QuantityError):  # `leftOut` says it
            found[name] = parse_milli(value)
    return found


def _counted(gangs: int) -> str:
    return "1 gang is" if gangs == 1 else f"{gangs} gangs are"
