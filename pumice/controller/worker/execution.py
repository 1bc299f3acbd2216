"""Carrying a plan out: stages in order, the steps of a stage side by side.

Each request takes one of the slots that all plans share. They are given out in turns by namespace, so that a plan of
hundreds of pods delays another namespace's request by no more than those that are under way. While a key of another
namespace waits for a worker, a plan ends after a window of steps, and the next pass goes on with the rest.

First one step is sent, then two, then four, so that a request that is refused for all pods of a Job is sent once and
not a thousand times. If a quota refuses a pod, the other pods of its task are not tried; pods of other tasks are.

Before a pod is removed, or marked for removal, the API server has confirmed that the Job is in the state that the plan
was made from: by a write of its status, which names the resourceVersion, or by a read. The same holds for owners of
Jobs, before a Job is created or removed.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pumice.api.kinds import COMMAND, JOB, POD, Kind
from pumice.api.meta import Raw
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.cluster.lifecycle import SentRequests
from pumice.cluster.turns import Slots
from pumice.controller.jobs.situation import PlanFailure
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    RecordEvent,
    RequeueAfter,
    Stage,
    Step,
    UnbuildableError,
    UpdateObject,
)
from pumice.controller.worker.memory import PlanOutcome
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.controller.worker.steps import StepSender

OUTAGE_SECONDS = 30.0
"""Maximum wait after the API server did not answer."""

WINDOW = 32
"""Steps of a plan that are carried out at least before other namespaces get its worker."""


@dataclass(slots=True)
class _Run:
    """A plan that is being carried out; the fields are arguments of `carry_out`, and its outcome."""

    job: Raw
    namespace: str
    others_wait: Callable[[], bool]
    outcome: PlanOutcome


class Executor:
    """Writes for the controller."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        metrics: ControllerMetrics,
        slots: Slots | None = None,
        *,
        concurrent: int = 16,
        kind: Kind = JOB,
        sent: SentRequests | None = None,
    ) -> None:
        """Create an executor.

        Args:
            client: Session with the API server.
            recorder: Takes events.
            metrics: The metrics to update.
            slots: Limit of the requests of all plans that are under way; that of one plan if None.
            concurrent: Maximum number of concurrent requests for one plan.
            kind: Kind of what plans are for.
            sent: Takes the writes that are under way, whose answers are waited for at the end.
        """
        self._slots = slots or Slots(concurrent)
        self._concurrent = concurrent
        self._kind = kind
        self._sender = StepSender(client, recorder, metrics, kind, sent or SentRequests())

    async def carry_out(
        self,
        plan: Plan,
        job: Raw,
        namespace: str = "",
        *,
        wide: bool = False,
        others_wait: Callable[[], bool] = lambda: False,
    ) -> PlanOutcome:
        """Carry a plan out, as far as the API server accepts its steps.

        Args:
            plan: The plan.
            job: The Job that it is for, as it was observed.
            namespace: The namespace that takes turns with others.
            wide: Whether to send many requests at once from the start: the last ones were accepted.
            others_wait: Tells whether keys of other namespaces wait for a worker.
        """
        outcome = PlanOutcome()
        run = _Run(job, namespace, others_wait, outcome)
        for stage in plan.stages:
            if not outcome.confirmed and _must_be_confirmed(stage, self._kind):
                async with self._slots.slot(namespace):
                    await self._sender.confirm(job, outcome)
            if outcome.goes_on:
                await self._stage(stage, run, self._concurrent if wide else 1)
            if outcome.finds or outcome.refused or not outcome.goes_on:
                break  # later steps were planned for another state
        if outcome.trouble is None:
            outcome.trouble = next(iter(outcome.over_quota.values()), outcome.refused)
        return outcome

    async def _stage(self, stage: Stage, run: _Run, width: int) -> None:
        if not _has_requests(stage):
            for step in stage:
                await self._sender.send(step, run.job, run.outcome)
            return
        steps, left = iter(stage), len(stage)
        while run.outcome.goes_on and left > 0 and width < self._concurrent:
            await self._side_by_side(steps, min(width, left), run, once=True)
            left -= width
            width *= 2
        if run.outcome.goes_on and left > 0:
            await self._side_by_side(steps, min(self._concurrent, left), run)

    async def _side_by_side(
        self, steps: Iterator[Step], width: int, run: _Run, *, once: bool = False
    ) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(width):
                group.create_task(self._drain(steps, run, once=once))

    async def _drain(self, steps: Iterator[Step], run: _Run, *, once: bool) -> None:
        """Carry out steps until none is left, or one; several of these share an iterator.

        A step is built when it has a slot, so that the process holds few manifests at a time.
        """
        outcome = run.outcome
        while True:
            async with self._slots.slot(run.namespace):
                if not outcome.goes_on:
                    return
                if outcome.progress >= WINDOW and run.others_wait():
                    outcome.interrupted = True
                    return
                try:
                    step = next(steps, None)
                except UnbuildableError as error:
                    outcome.trouble = PlanFailure("PluginError", str(error))
                    return
                if step is None:
                    return
                await self._sender.send(step, run.job, outcome)
            if once:
                return


def _has_requests(stage: Stage) -> bool:
    """False if a stage only records events and says when the next pass is due."""
    return not isinstance(stage, tuple) or not all(
        isinstance(step, RecordEvent | RequeueAfter) for step in stage
    )


def _must_be_confirmed(stage: Stage, about: Kind) -> bool:
    """True if a stage has steps that must not follow from an outdated state.

    These are steps that remove pods or mark them for removal, steps that create a Job, which may have run already, and
    steps that terminate or remove Jobs.
    """
    return isinstance(stage, tuple) and any(_is_grave(step, about) for step in stage)


def _is_grave(step: Step, about: Kind) -> bool:
    match step:
        case CreateObject(kind=kind):
            return kind in (JOB, COMMAND)
        case DeleteObject(kind=kind, resource_version=version):
            return kind == POD or (kind == JOB and version is None)
        case UpdateObject(kind=kind):
            return kind == POD and about == JOB  # a mark; others give pods their PodGroup
    return False
