"""Carrying a plan out: stages in order, the steps of a stage side by side.

First one step is sent, then two, then four, so that a request that is refused for all pods of a Job is sent once and
not a thousand times. If a quota refuses a pod, the other pods of its task are not tried; pods of other tasks are.

Before a pod is removed, or marked for removal, the API server has confirmed that the Job is in the state that the plan
was made from: by a write of its status, which names the resourceVersion, or by a read. The same holds for owners of
Jobs, before a Job is created or removed.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice

from pumice.api.kinds import COMMAND, JOB, POD, Kind
from pumice.api.meta import Raw
from pumice.cluster.client import Client
from pumice.cluster.events import EventRecorder
from pumice.cluster.sent import SentRequests
from pumice.controller.jobs.observed import PlanFailure
from pumice.controller.loop.key_pairs import KeyMaker, make_keys
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.loop.steps import PlanOutcome, StepSender
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    Stage,
    Step,
    UnbuildableError,
    UpdateObject,
)

__all__ = ["OUTAGE_SECONDS", "Executor"]

OUTAGE_SECONDS = 30.0
"""Maximum wait after the API server did not answer."""


class Executor:
    """Writes for the controller."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        metrics: ControllerMetrics,
        *,
        concurrent: int = 16,
        kind: Kind = JOB,
        make_keys: KeyMaker = make_keys,
        sent: SentRequests | None = None,
    ) -> None:
        """Create an executor.

        Args:
            client: Session with the API server.
            recorder: Takes events.
            metrics: The metrics to update.
            concurrent: Maximum number of concurrent requests for one plan.
            kind: Kind of what plans are for.
            make_keys: Makes the key pairs of Secrets.
            sent: Takes the writes that are under way, whose answers are waited for at the end.
        """
        self._concurrent = concurrent
        self._kind = kind
        self._sender = StepSender(
            client,
            recorder,
            metrics,
            kind=kind,
            make_keys=make_keys,
            sent=sent or SentRequests(),
        )

    async def carry_out(self, plan: Plan, job: Raw, *, wide: bool = False) -> PlanOutcome:
        """Carry a plan out, as far as the API server accepts its steps.

        Args:
            plan: The plan.
            job: The Job that it is for, as it was observed.
            wide: Whether to send many requests at once from the start: the last ones were accepted.
        """
        outcome = PlanOutcome()
        for stage in plan.stages:
            if not outcome.confirmed and _must_be_confirmed(stage, self._kind):
                await self._sender.confirm(job, outcome)
            if outcome.goes_on:
                await self._stage(stage, job, outcome, self._concurrent if wide else 1)
            if outcome.finds or outcome.refused or not outcome.goes_on:
                break  # later steps were planned for another state
        if outcome.trouble is None:
            outcome.trouble = next(iter(outcome.over_quota.values()), outcome.refused)
        return outcome

    async def _stage(self, stage: Stage, job: Raw, outcome: PlanOutcome, width: int) -> None:
        steps = iter(stage)
        try:
            while outcome.goes_on and width < self._concurrent:
                batch = list(islice(steps, width))
                async with asyncio.TaskGroup() as group:
                    for step in batch:
                        group.create_task(self._sender.send(step, job, outcome))
                if len(batch) < width:
                    return
                width *= 2
        except UnbuildableError as error:
            outcome.trouble = PlanFailure("PluginError", str(error))
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._concurrent, len(stage))):
                group.create_task(self._drain(steps, job, outcome))

    async def _drain(self, steps: Iterator[Step], job: Raw, outcome: PlanOutcome) -> None:
        """Carry out steps until none is left; several of these share an iterator."""
        while outcome.goes_on:
            try:
                step = next(steps, None)
            except UnbuildableError as error:
                outcome.trouble = PlanFailure("PluginError", str(error))
                return
            if step is None:
                return
            await self._sender.send(step, job, outcome)


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
