"""Missing amounts below a limit, as a sentence and as data: "6 of 8 cpu used, 2 more allowed, needs 12"."""

from collections.abc import Container, Sequence
from heapq import nsmallest
from typing import Any, NamedTuple

import numpy as np

from pumice.api.messages import listed
from pumice.api.quantities import MILLI, format_milli
from pumice.scheduler.model.axis import Ints
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.queues import remainder
from pumice.scheduler.model.tasks import TENTATIVE, SchedulingStatus, TaskInfo
from pumice.scheduler.results import Reason
from pumice.scheduler.view import SessionView

_HOLDERS = 3
"""Gangs that a reason names at most."""

_BYTES = ("memory", "ephemeral-storage", "requests.memory", "limits.memory")
_BINARY = (("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_CPU = ("cpu", "requests.cpu", "limits.cpu")


class Deficit(NamedTuple):
    """A resource of which less is left than is needed; CPU in milli-cores, all others in whole units.

    Attributes:
        used: How much of the limit is used.
        kept: How much of what is not used is kept for the guarantees of other queues.
    """

    resource: str
    used: int
    limit: int
    needs: int
    kept: int = 0

    @property
    def left(self) -> int:
        """How much more is allowed."""
        return max(self.limit - self.used - self.kept, 0)

    @property
    def quantities(self) -> dict[str, str]:
        """The same as quantities, ready for JSON, and how much more is allowed."""
        units = 1 if self.resource in _CPU else MILLI
        named = {"used": self.used, "limit": self.limit, "allowed": self.left, "needs": self.needs}
        if self.kept:
            named["kept"] = self.kept
        texts = {name: format_milli(amount * units) for name, amount in named.items()}
        return {"resource": self.resource} | texts


def amount_text(resource: str, amount: int) -> str:
    """An amount for people: `2.5` cpu, `1.53Gi` memory, `8` devices."""
    if resource in _CPU:
        return _rounded(amount / MILLI, 3)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for suffix, factor in _BINARY:
            if amount >= factor:
                return _rounded(amount / factor, 2) + suffix
    return str(amount)


def _rounded(number: float, digits: int) -> str:
    return f"{number:.{digits}f}".rstrip("0").rstrip(".")


def deficit_text(shortages: Sequence[Deficit], used: str = "used") -> str:
    """`6 of 8 cpu used, 2 more allowed, needs 12; 3Gi of 4Gi memory used, …`; `used` names the amounts that count against the limit."""
    return listed([_sentence(each, used) for each in shortages], "; ")


def _sentence(deficit: Deficit, used: str) -> str:
    def text(amount: int) -> str:
        return amount_text(deficit.resource, amount)

    kept = f", {text(deficit.kept)} kept for guarantees of other queues" if deficit.kept else ""
    return (
        f"{text(deficit.used)} of {text(deficit.limit)} {deficit.resource} {used}{kept}, "
        f"{text(deficit.left)} more allowed, needs {text(deficit.needs)}"
    )


def lacks(job: JobInfo, room: Sequence[int]) -> bool:
    """Whether the minimum of a gang is more than there is room for, by column; the number of pods is not limited."""
    for column, needs in job.required:  # noqa: SIM110 - asked of each gang that waits
        if needs > room[column]:
            return True
    return False


def shortages(session: SessionView, job: JobInfo, used: Ints, limits: Ints) -> list[Deficit]:
    """Missing amounts for the minimum of a gang, as far as limits are exceeded, by column; the number of pods is not limited."""
    return [
        Deficit(session.resource(column), used.item(column), limits.item(column), needs)
        for column, needs in job.required
        if used.item(column) + needs > limits.item(column)
    ]


def reserved_by(
    session: SessionView, shortages: Sequence[Deficit], rows: Container[int] | None = None
) -> str:
    """For whom room is kept that is not used yet: `reserved for ns/a: 16 cpu, ns/b: 2 cpu`; empty if for none.

    Args:
        session: The session.
        shortages: What is missing; only the first resource is looked at.
        rows: Rows of the queues whose gangs count. If None, gangs of all queues do, except for what broken ones lack.
    """
    column = session.column(shortages[0].resource)
    if column is None:
        return ""
    amounts: dict[str, int] = {}
    for job in session.shares.reserving:
        counts = job.row in rows if rows is not None else job.row >= 0 and not job.is_broken
        if counts and job.reserved is not None:
            amounts[job.key] = job.reserved.item(column)
    for job in session.entered.values():
        if job.key not in amounts and (rows is None or job.row in rows) and not job.is_broken:
            amounts[job.key] = remainder(job).item(column)
    most = nsmallest(_HOLDERS + 1, ((-has, key) for key, has in amounts.items() if has > 0))
    resource = shortages[0].resource
    named = [f"{key}: {amount_text(resource, -has)} {resource}" for has, key in most[:_HOLDERS]]
    if len(most) > _HOLDERS:
        named.append("…")
    return f"reserved for {', '.join(named)}" if named else ""


def insufficient(shortages: Sequence[Deficit]) -> str:
    """`insufficient cpu, insufficient memory`, in Volcano's order."""
    return listed([f"insufficient {each.resource}" for each in shortages])


def refusal(message: str, shortages: Sequence[Deficit], plain: str = "", **details: Any) -> Reason:
    """The reason of a gang that waits because of a limit.

    Args:
        message: Its sentence.
        shortages: What is missing.
        plain: The sentence for people, where the message follows Volcano's wording.
        details: What else belongs into the data, such as the queue; names among it are part of the cause.
    """
    names = [each.resource for each in shortages]
    data = {"shortages": [each._asdict() for each in shortages]}
    causes = (*(str(value) for value in details.values()), *names)
    numbers = {"shortages": [each.quantities for each in shortages]}
    return Reason("NotEnoughResources", message, details | data, causes, plain, details | numbers)


def demand(job: JobInfo, task: TaskInfo) -> tuple[Ints, Ints]:
    """Amounts that the pods of a gang hold tentatively, and the amounts that it needs for its minimum, including them.

    For a gang that has its minimum, or is promised it, these are nothing, and what the single pod asks for.
    """
    nothing: Ints = np.zeros_like(job.allocated)
    if job.ready >= job.min_member:
        return nothing, task.shape.vector
    tentative = [each for each in job.tasks.values() if each.status in TENTATIVE]
    held = sum((each.shape.vector for each in tentative), nothing)
    waiting = [each for each in job.tasks.values() if each.status is SchedulingStatus.PENDING]
    firm = job.ready - sum(each.status is SchedulingStatus.ALLOCATED for each in tentative)
    if firm + len(tentative) >= job.min_member:
        return nothing, task.shape.vector
    if all(each.shape is task.shape for each in (*tentative, *waiting)):
        return held, (job.min_member - firm) * task.shape.vector
    return held, held + job.pending
