"""Placing pods of one gang, one after the other, on a statement: until the gang is ready, or until it cannot become so.

A gang with sub-groups is placed unit by unit. A unit that finds no place for all that it needs is undone and passed over.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from pumice.api.queues import Queue
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.shapes import PodShape
from pumice.scheduler.model.tasks import ALLOCATED, PENDING, PIPELINED, TaskInfo
from pumice.scheduler.placing.pod_queue import PodQueue
from pumice.scheduler.placing.rank_order import RankOrder
from pumice.scheduler.placing.units import Unit, Units
from pumice.scheduler.points import Step
from pumice.scheduler.session.node_ranking import NodeRanking
from pumice.scheduler.session.node_values import NOWHERE
from pumice.scheduler.session.outcomes import JobOutcome
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.statement import Statement


class GangTurn(NamedTuple):
    """What a turn of one gang is about.

    Attributes:
        promises: Whether pods are only promised their places, also those that are free, and only until the minimum has some; no reasons
            of nodes are then looked for.
        reclaims: Whether their queue must be entitled to take back what they need.
    """

    session: Session
    queue: Queue
    job: JobInfo
    statement: Statement
    promises: bool = False
    reclaims: bool = False

    @property
    def has_enough(self) -> bool:
        """Whether the gang may begin; if pods are only promised their places, whether it has what it needs."""
        answers, job = self.session.answers, self.job
        if self.promises:
            return answers.is_pipelined(job) and not answers.is_starving(job)
        if job.sub_groups is None:
            return answers.is_ready(job)
        return may_begin(self.session, job, self.statement)


class Filling:
    """Pods of a gang that get places one after the other, without regard to domains."""

    def __init__(self, turn: GangTurn, outcome: JobOutcome) -> None:
        """Begin with nothing placed; `outcome` takes the reasons."""
        self._turn = turn
        self._session, self._queue, self._job, self._statement, self._promises, _ = turn
        self._outcome = outcome
        self._failed_roles: set[str] = set()
        self._last: tuple[PodShape, NodeRanking] | None = None

    def fill(self, tasks: PodQueue | Units) -> bool:
        """Place or promise pods until the gang is ready or cannot become so; whether it is ready.

        If they are only promised, until it has what it needs.
        """
        if isinstance(tasks, PodQueue):
            is_bound = not self._promises and len(tasks) > 1
            least = self._session.answers.lacking(self._job) if is_bound else 1
            return self.pods(
                tasks, lambda: self._turn.has_enough, self._goes_on_without, least=least
            )
        while tasks:
            unit = tasks.pop()
            if self._unit(tasks, unit):
                if self._turn.has_enough:
                    break
            elif not tasks.may_be_ready():
                break
        groups, failed = self._job.sub_groups, self._outcome.failed
        if groups is not None and failed is not None:
            group = groups.of(failed[0])
            self._outcome.fit = group.of.promised if group is not None else 0
        return self._turn.has_enough

    def _goes_on_without(self, task: TaskInfo) -> bool:
        """Whether the gang can still become ready after no node was found for a pod."""
        self._failed_roles.add(task.role)
        return goes_on(self._job, self._failed_roles)

    def keep_whole(self) -> None:
        """Before the statement is committed: pods of sub-groups some of which must wait are only promised their places.

        So a sub-group is never bound in part.
        """
        early = _early(self._job, self._statement)
        if early:
            self._statement.promise_only({task.key for task in early})

    def _unit(self, units: Units, unit: Unit) -> bool:
        """Place or promise what a unit needs, or nothing; whether anything was."""
        if units.passes_over(unit):
            return False
        before = self._statement.savepoint()
        if unit.sub_group is not None and unit.is_whole:
            tasks, group = list(unit.tasks.left()), unit.sub_group
            is_first = self._outcome.failed is None
            self.pods(
                unit.tasks,
                lambda: group.is_pipelined if self._promises else group.is_ready,
                lambda _: unit.may_be_whole,
            )
            if not group.is_pipelined:
                if is_first:
                    self._outcome.beside = len(self._statement) - before
                self._statement.roll_back(before)
                units.pass_over(unit, tasks)
                return False
            units.tried(unit)
            return True

        def goes_on_without(task: TaskInfo) -> bool:
            units.pass_over(unit, [task])
            return True

        done = self.pods(unit.tasks, lambda: len(self._statement) > before, goes_on_without)
        units.tried(unit)
        return done

    def pods(
        self,
        tasks: PodQueue,
        is_done: Callable[[], bool],
        goes_on_without: Callable[[TaskInfo], bool],
        near: RankOrder | None = None,
        least: int = 1,
    ) -> bool:
        """Place or promise pods until that suffices; whether it does.

        Args:
            tasks: The pods.
            is_done: Whether what is placed suffices.
            goes_on_without: Whether it may still suffice after no node was found for a pod.
            near: The nodes of one domain in the order in which they are tried; all nodes if None.
            least: Pods less than which do not suffice.
        """
        session, queue, outcome = self._session, self._queue, self._outcome
        answers = session.answers
        failed: set[Hashable] = set()
        shape, impossible, placed = None, None, 0
        while tasks:
            session.time.check()
            task = tasks.pop()
            session.decided += 1
            if failed and session.alike(task) in failed:
                continue  # more pods of the gang make no room for it
            if tasks.defer_with_others(task):
                continue
            if task.shape is not shape:
                shape, impossible = task.shape, answers.why_impossible(task.shape)
            refusal = impossible or answers.why_not_allocatable(queue, task)
            if refusal is None and self._turn.reclaims:
                refusal = answers.why_not_preemptive(queue, task)
            if refusal is not None:
                outcome.refused = refusal
                failed.add(session.alike(task))
                if impossible is None:
                    outcome.is_over_share = True
                step: Step = "share" if impossible is None else "check"
                outcome.causes |= session.extensions.causes[step]
                continue
            if not self._place(task, tasks, near):
                if tasks.defer(task):
                    continue
                if outcome.failed is None and not self._promises:
                    outcome.failed = (task, self._ranking(task).why_not())
                failed.add(session.alike(task))
                if not goes_on_without(task):
                    break
                continue
            tasks.placed()
            placed += 1
            if placed >= least and is_done():
                return True
        return is_done()

    def _place(self, task: TaskInfo, tasks: PodQueue, near: RankOrder | None) -> bool:
        session = self._session
        row, is_later = self._choose(task, tasks, near)
        if row == NOWHERE:
            return False
        if near is not None:
            near.placed(row)
        node = session.state.nodes.order[row]
        if not self._promises and session.waits_for_queue(self._queue, task):
            is_later = self._outcome.waits_for_queue = True
        if is_later or self._promises:
            self._statement.pipeline(task, node)
        else:
            self._statement.allocate(task, node)
        return True

    def _choose(self, task: TaskInfo, tasks: PodQueue, near: RankOrder | None) -> tuple[int, bool]:
        """The row of the node that a pod gets, and whether it must wait there for terminating pods."""
        session = self._session
        ranking = self._ranking(task)
        nominated = session.nominations.row(task) if task.nominated else NOWHERE
        if near is not None and nominated != NOWHERE and not near.has(nominated):
            nominated = NOWHERE
        row = ranking.only(nominated) if nominated != NOWHERE else NOWHERE
        if row == NOWHERE:
            group = tasks.group
            row = ranking.best(task, group) if near is None else near.best(task, ranking, group)
        if row != NOWHERE:
            return row, False
        row = ranking.only(nominated, later=True)
        if row == NOWHERE:
            row = ranking.best_later(task) if near is None else near.best_later(task, ranking)
        return row, True

    def _ranking(self, task: TaskInfo) -> NodeRanking:
        """The ranking of a pod's class; pods of one shape have the same unless rules about other pods set them apart."""
        session, last = self._session, self._last
        if last is not None and last[0] is task.shape and not session.state.peers.is_live:
            return last[1]
        ranking = session.ranking(task, self._queue.metadata.name)
        self._last = task.shape, ranking
        return ranking


def may_begin(session: Session, job: JobInfo, statement: Statement) -> bool:
    """Whether a job is ready without pods that a statement gives places and that must wait for others of their sub-group."""
    is_ready = session.answers.is_ready(job)
    early = _early(job, statement) if is_ready else []
    if not early:
        return is_ready
    for task in early:
        job.move(task, PIPELINED)
    is_ready = session.answers.is_ready(job)
    for task in early:
        job.move(task, ALLOCATED)
    return is_ready


def _early(job: JobInfo, statement: Statement) -> list[TaskInfo]:
    """Pods to which a statement gives places, of sub-groups that are not ready."""
    groups = job.sub_groups
    if groups is None:
        return []
    tasks = [job.tasks[key] for key in statement.placements]
    return [task for task in tasks if (group := groups.of(task)) and not group.is_ready]


def goes_on(job: JobInfo, failed_roles: set[str]) -> bool:
    """Whether a job can still become ready after pods of these roles found no node.

    Volcano's `NeedContinueAllocating`.
    """
    if job.min_member == len(job.tasks):
        return False
    if job.min_member < job.min_task_total:
        hopeful = sum(
            counts[PENDING] for role, counts in job.roles.items() if role not in failed_roles
        )
        return job.ready + hopeful >= job.min_member
    return all(job.role_ready(role) >= job.min_task.get(role, 0) for role in failed_roles)
