"""Why a gang waits after a session: one reason for the gang, and conditions of pods with a reason of their own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from pumice.api.messages import LONGEST, listed
from pumice.scheduler.cycle.phases import is_releasing, next_phase
from pumice.scheduler.explain.nearest import pods_of
from pumice.scheduler.explain.sentences import FitFailure, fit_summary, gang_message, group_message
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.tasks import PENDING, RUNNING, TaskInfo
from pumice.scheduler.results import OTHER_SCHEDULER, Finding, PodVerdict, Reason, with_text
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session

_GATED = PodVerdict("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
_UNSCHEDULABLE = "Unschedulable"
_WITH_ITS_GANG = PodVerdict(_UNSCHEDULABLE, "waits for its gang; the PodGroup says why")
_BEYOND = PodVerdict(
    _UNSCHEDULABLE,
    "its gang has its minimum without this pod, which waits for the same as others of the gang",
)


def find(session: Session, job: JobInfo) -> Finding | None:
    """The finding about a gang; None if there is nothing to report."""
    held = session.state.gangs.quarantined.get(job.key)
    if held is not None:
        return Finding(held, is_unschedulable=True)
    outcome = session.outcomes.get(job.key) or JobOutcome()
    found = _reason(session, job, outcome)
    if found is None:
        return None
    reason, is_unschedulable = found
    strangers = session.state.gangs.strangers.get(job.key)
    if strangers and job.group is not None and session.answers.why_invalid(job) is not None:
        reason, is_unschedulable = _with_strangers(session, job, reason, strangers), True
    return Finding(reason, is_unschedulable, dict(_pods(session, job, outcome, reason)))


def _reason(session: Session, job: JobInfo, outcome: JobOutcome) -> tuple[Reason, bool] | None:
    """The reason of a gang, and whether the condition of its PodGroup is set."""
    waiting = job.counts[PENDING]
    if job.group is None:
        names = "1 pod names" if waiting == 1 else f"{waiting} pods name"
        message = f"PodGroup {job.key} does not exist; {names} it"
        details = {"podGroup": job.key, "pods": waiting}
        return (Reason("PodGroupNotFound", message, details), False) if waiting else None
    if job.is_left:
        message = (
            f"it has been in queue {job.queue} for five minutes without pods; "
            "no room is kept for it until they are created"
        )
        return Reason("NoPods", message, {"queue": job.queue}, (job.queue,)), True
    judges = bool(session.extensions.job_ready)
    is_short = judges and not session.answers.is_ready(job)
    is_running = job.counts[RUNNING] > 0
    if outcome.refusal is not None and not is_running and session.is_pending(job):
        return outcome.refusal, True  # its pods are created once it is in its queue
    if is_short and _is_arriving(session, job):
        return None
    if outcome.refusal is not None:
        return outcome.refusal, is_short
    if is_short:
        return _of_unready(session, job, outcome)
    return (_remainder(session, job, outcome), False) if waiting else None


def _with_strangers(
    session: Session, job: JobInfo, reason: Reason, strangers: Mapping[str, str]
) -> Reason:
    """The reason of a gang with too few pods, where others that name it are left to other schedulers, which are given by pod."""
    names = sorted(set(strangers.values()))
    pods = "1 pod names" if len(strangers) == 1 else f"{len(strangers)} pods name"
    ours = listed(session.state.scheduler_names, " or ")
    why = f"{pods} schedulerName {listed(names)}; this scheduler places pods of {ours}"
    return Reason(
        OTHER_SCHEDULER,
        f"{reason.message}; {why}",
        reason.details | {"otherSchedulers": dict(sorted(Counter(strangers.values()).items()))},
        tuple(names),
        plain=f"needs {pods_of(job.min_member)} and has {job.valid}; {why}",
    )


def _of_unready(session: Session, job: JobInfo, outcome: JobOutcome) -> tuple[Reason, bool] | None:
    if is_releasing(job):
        return None
    if next_phase(job, job.status.phase, unschedulable=False) == "Completed":
        return (_remainder(session, job, outcome), False) if job.counts[PENDING] else None
    promised = _promised(session, job, outcome)
    if promised is not None:
        return promised, True
    invalid = session.answers.why_invalid(job)
    if invalid is not None:
        return invalid, bool(job.tasks)
    return _gang(session, job, outcome), True


def _is_arriving(session: Session, job: JobInfo) -> bool:
    """True if pods of a gang are still being created, so that it is too early to report missing ones."""
    moment, _ = job.arrived
    return job.valid < job.min_member and session.now < moment + session.state.delays.arrival


def _promised(session: Session, job: JobInfo, outcome: JobOutcome) -> Reason | None:
    places = {
        task.key: session.pipelined[task.key]
        for task in job.tasks.values()
        if task.key in session.pipelined
    }
    if not places:
        return None
    nodes = listed(sorted(set(places.values())))
    waiting = "1 pod waits" if len(places) == 1 else f"{len(places)} pods wait"
    message = f"{waiting} for terminating pods to leave {nodes}"
    if outcome.waits_for_queue:
        message = (
            f"{waiting} for terminating pods to end, which count in queue {job.queue} until then"
        )
    return Reason("Pipelined", message, {"places": dict(sorted(places.items()))})


def _gang(session: Session, job: JobInfo, outcome: JobOutcome) -> Reason:
    gated = [task for task in job.tasks.values() if task.gates]
    gated.sort(key=_ORDER)
    schedulable = job.ready + outcome.schedulable
    total = len(job.tasks)
    waiting_gated = sum([task.status is PENDING for task in gated])
    rest = job.counts[PENDING] - waiting_gated - outcome.schedulable
    pending = {
        "Schedulable": outcome.schedulable,
        "SchedulingGated": waiting_gated,
        "Unschedulable": rest,
    }
    details: dict[str, object] = {
        "minMember": job.min_member,
        "tasks": total,
        "schedulable": schedulable,
        "pending": pending,
    }
    reason = "NotEnoughResources"
    causes: tuple[str, ...] = ()
    origin: tuple[str, str] | None = None
    if outcome.failed is not None:
        task, failure = outcome.failed
        origin = (task.name, failure.refusals.message)
        details |= {"pod": task.key} | (failure.refusals.details if failure.refusals.nodes else {})
        causes = tuple(sorted(failure.refusals.counts))
        if outcome.nowhere is not None:
            origin = (task.name, outcome.nowhere.message)
            details["network"], causes = outcome.nowhere.details, outcome.nowhere.causes
    elif outcome.refused is not None:
        origin = ("", outcome.refused.message)
        details |= outcome.refused.details
        reason, causes = outcome.refused.reason, outcome.refused.causes
    elif gated:
        origin = (gated[0].name, f"scheduling gates {gated[0].gates}")
        reason, causes = "SchedulingGated", tuple(sorted({task.gates for task in gated}))
        details["gates"] = {task.key: task.gates for task in gated}
    why = group_message(job, ready=False, pending=pending, origin=origin)
    short = max(job.min_member - schedulable, 0)
    message = gang_message(short, total, why)
    plain, numbers = _for_people(session, job, outcome, gated)
    too_large = session.why_too_large(job) if outcome.failed is not None else ""
    if too_large:
        message = with_text(message, too_large)
        near = outcome.failed[1].nearest if outcome.failed is not None else None
        if near is None or near.too_small < near.candidates or not near.candidates:
            plain = with_text(plain, too_large)
    return Reason(reason, message, details, causes, plain, numbers)


def _for_people(
    session: Session, job: JobInfo, outcome: JobOutcome, gated: Sequence[TaskInfo] = ()
) -> tuple[str, dict[str, Any]]:
    """The sentence for people about a gang that was tried, and its numbers as data."""
    text, numbers = _of_outcome(session, job, outcome, gated)
    tried = session.spared.get(job.key)
    if tried is None:
        return text, numbers
    sentences = [text, *(each.summary for each in tried.values())]
    return listed(sentences, "; ", LONGEST), numbers | {
        "victims": [each.details for each in tried.values()]
    }


def _of_outcome(
    session: Session, job: JobInfo, outcome: JobOutcome, gated: Sequence[TaskInfo]
) -> tuple[str, dict[str, Any]]:
    if outcome.nowhere is not None:
        return outcome.nowhere.summary, outcome.nowhere.numbers
    if outcome.failed is not None:
        task, failure = outcome.failed
        groups = job.sub_groups
        group = groups.of(task) if groups is not None else None
        among = (job if group is None else group).tasks.values()
        waiting = [each for each in among if each.status is PENDING]
        alike = sum([each.shape is task.shape and not each.gates for each in waiting])
        lacking = job.min_member - job.ready if group is None else group.size - group.ready
        pods = min(alike, lacking) if lacking > 0 else alike
        numbers = failure.nearest.details if failure.nearest else {}
        placed = outcome.schedulable if group is None else outcome.beside
        promised = _promised_to_others(session, job, failure)
        numbers = {"pods": pods, "placed": placed} | numbers
        if promised[1]:
            numbers["promisedTo"] = promised[1]
        text = fit_summary(failure, pods, placed, promised)
        if group is None:
            return text, numbers
        of = group.of
        numbers |= {"subGroups": {"fit": outcome.fit, "valid": of.valid, "min": of.minimum}}
        return f"{of.fitting(outcome.fit)}; {text}", numbers
    if outcome.refused is not None:
        return outcome.refused.summary, outcome.refused.numbers
    if gated:
        gates = listed(sorted({task.gates for task in gated}))
        what = "pod waits" if len(gated) == 1 else "pods wait"
        text = f"{len(gated)} {what} for scheduling gates to be removed: {gates}"
        return text, {"gated": len(gated)}
    incomplete = _incomplete(job)
    if incomplete is not None:
        return incomplete.message, incomplete.details
    return "no action of the scheduler has tried to place its pods yet", {}


def _incomplete(job: JobInfo) -> Reason | None:
    """That sub-groups have too few pods, so that those which they have wait."""
    short = [group for group in job.sub_groups or () if not group.is_valid and group.valid]
    if not short:
        return None
    named = listed(
        [
            f"{' '.join((group.of.title, *group.key))}: {group.valid} of {group.size}"
            for group in short
        ]
    )
    these = "a sub-group has" if len(short) == 1 else f"{len(short)} sub-groups have"
    message = f"{these} fewer pods than start together ({named}); the others must be created first"
    return Reason("NotEnoughPodsOfTask", message, {"subGroups": len(short)})


def _promised_to_others(
    session: Session, job: JobInfo, failure: FitFailure
) -> tuple[int, list[str]]:
    """Number of nodes with resources that a pod could use and that are promised to other gangs, and these gangs."""
    nodes = set(failure.nearest.promised) if failure.nearest else None
    if not nodes:
        return 0, []
    places = [(node, pod) for pod, node in session.pipelined.items() if node in nodes]
    found = [(node, session.state.tasks[pod].job) for node, pod in places]
    others = [(node, gang) for node, gang in found if gang != job.key]
    return len({node for node, _ in others}), sorted({gang for _, gang in others})


def _remainder(session: Session, job: JobInfo, outcome: JobOutcome) -> Reason:
    """Why pods above the minimum wait."""
    waiting = job.counts[PENDING]
    total = len(job.tasks)
    start = f"{waiting} of {total} pods wait" if total > 1 else "its only pod waits"
    if 0 < job.min_member <= job.ready:
        start += f" beyond the minimum of {job.min_member}"
    details: dict[str, object] = {"tasks": len(job.tasks), "waiting": waiting}
    promised = _promised(session, job, outcome)
    if promised is not None:
        return Reason("Pipelined", promised.message, details | promised.details)
    if outcome.failed is not None:
        task, failure = outcome.failed
        details |= {"pod": task.key} | failure.refusals.details
        why = outcome.nowhere
        message = f"{start}: {task.name}: {why.message if why else failure.refusals.message}"
        plain, numbers = _for_people(session, job, outcome)
        causes = why.causes if why else tuple(sorted(failure.refusals.counts))
        return Reason("NotEnoughResources", message, details, causes, f"{start}: {plain}", numbers)
    if outcome.refused is not None:
        why = outcome.refused
        message = f"{start}: {why.message}"
        text, numbers = _for_people(session, job, outcome)
        details |= why.details
        return Reason(why.reason, message, details, why.causes, f"{start}: {text}", numbers)
    gated = {task.key: task.gates for task in _in_order(job) if task.gates}
    if gated:
        gates = listed(sorted(set(gated.values())))
        message = f"{start}: scheduling gates {gates}"
        return Reason("SchedulingGated", message, details | {"gates": gated})
    incomplete = _incomplete(job)
    if incomplete is not None:
        message = f"{start}: {incomplete.message}"
        return Reason(incomplete.reason, message, details | incomplete.details)
    return Reason("NotTried", f"{start}: no action of the scheduler has tried yet", details)


# -- its pods --------------------------------------------------------------------------------


def _pods(
    session: Session, job: JobInfo, outcome: JobOutcome, reason: Reason
) -> Iterator[tuple[str, PodVerdict]]:
    """Conditions of waiting pods with a reason of their own, or with a condition whose reason has ended."""
    is_short = job.is_short
    refused = outcome.refused if outcome.failed is None else None
    if refused is None and outcome.is_over_share and not session.is_pending(job):
        refused = outcome.refusal
    for task in _in_order(job):
        if task.status is not PENDING:
            continue
        impossible = (
            session.answers.why_impossible(task.shape) if outcome.refused is not None else None
        )
        if task.is_held:
            yield task.key, _GATED
        elif job.group is None:
            yield task.key, PodVerdict(_UNSCHEDULABLE, reason.message)
        elif task.gates:
            yield task.key, _GATED
        elif impossible is not None:
            yield task.key, PodVerdict(_UNSCHEDULABLE, impossible.message)
        elif outcome.failed is not None and outcome.failed[0] is task:
            why = outcome.nowhere or outcome.failed[1].refusals
            yield task.key, PodVerdict(_UNSCHEDULABLE, why.message)
        elif refused is not None:
            yield task.key, PodVerdict(_UNSCHEDULABLE, refused.message)
            refused = None  # the others wait with it
        elif task.verdict is not None:
            yield task.key, _WITH_ITS_GANG if is_short else _BEYOND


def _in_order(job: JobInfo) -> list[TaskInfo]:
    return sorted(job.tasks.values(), key=_ORDER)


_ORDER = attrgetter("order")
