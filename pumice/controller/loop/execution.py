"""Carrying a plan out: every kind of step as one request, stages in order.

Steps of a stage go side by side, first one, then two, then four, so that a request that will be refused
for all pods of a Job is refused once and not a thousand times.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pumice.api.kinds import JOB, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.cluster.client import Client
from pumice.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from pumice.cluster.events import EventRecorder, Reference
from pumice.controller.loop.key_pairs import KeyMaker, make_keys, with_keys
from pumice.controller.loop.metrics import ControllerMetrics
from pumice.controller.observed import Trouble
from pumice.controller.owners import controls_raw
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    Plan,
    RecordEvent,
    RequeueAfter,
    RequireAbsent,
    RequireObject,
    Step,
    UpdateObject,
)

__all__ = ["Executor", "Outcome"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Outcome:
    """What came of a plan.

    Attributes:
        written: Objects as the server has them now, with their kinds; None for one that was deleted.
        finds: Objects that have a name that was to be created.
        after: Seconds after which to look again, even if nothing changes.
        outdated: Whether the picture that the plan was made from turned out to be old.
        trouble: What the server refused.
        broken: Whether the server could not be reached.
    """

    written: list[tuple[Kind, str, str, str, Raw | None]] = field(default_factory=list)
    finds: list[tuple[Kind, Raw]] = field(default_factory=list)
    after: float | None = None
    outdated: bool = False
    trouble: Trouble | None = None
    broken: bool = False

    @property
    def complete(self) -> bool:
        """Whether every step was carried out."""
        return not (self.outdated or self.trouble or self.broken)


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
    ) -> None:
        """Make an executor.

        Args:
            client: Session with the API server.
            recorder: Takes events.
            metrics: What to count in.
            concurrent: Requests of one plan under way at once.
            kind: Kind of what plans are for.
            make_keys: Makes the key pairs of Secrets.
        """
        self._client = client
        self._recorder = recorder
        self._metrics = metrics
        self._concurrent = concurrent
        self._kind = kind
        self._make_keys = make_keys

    async def carry_out(self, plan: Plan, job: Raw) -> Outcome:
        """Carry a plan out as far as the server lets it.

        Args:
            plan: The plan.
            job: The Job that it is for, as it was observed.
        """
        outcome = Outcome()
        for step in plan.steps:
            if isinstance(step, RequeueAfter):
                after = outcome.after
                outcome.after = step.seconds if after is None else min(after, step.seconds)
        for stage in plan.stages:
            await self._stage(stage, job, outcome)
            if outcome.finds or not outcome.complete:
                break  # what follows was planned for another picture
        return outcome

    async def _stage(self, stage: Sequence[Step], job: Raw, outcome: Outcome) -> None:
        begun, width = 0, 1
        while begun < len(stage) and outcome.complete:
            batch = stage[begun : begun + width]
            async with asyncio.TaskGroup() as group:
                for step in batch:
                    group.create_task(self._step(step, job, outcome))
            begun += len(batch)
            width = min(width * 2, self._concurrent)

    async def _step(self, step: Step, job: Raw, outcome: Outcome) -> None:
        match step:
            case CreateObject():
                await self._counted(
                    "create", step.kind, outcome, lambda: self._create(step, outcome)
                )
            case UpdateObject():
                await self._counted(
                    "update", step.kind, outcome, lambda: self._update(step, outcome)
                )
            case DeleteObject():
                await self._counted(
                    "delete", step.kind, outcome, lambda: self._delete(step, outcome)
                )
            case PatchStatus():
                await self._counted(
                    "status", JOB, outcome, lambda: self._status(step, job, outcome)
                )
            case RequireObject():
                await self._require(step, outcome)
            case RequireAbsent():
                await self._require_absent(step, job, outcome)
            case RecordEvent():
                about = Reference.of(self._kind, _meta(job))
                self._recorder.record(about, step.type, step.reason, step.message)

    async def _require(self, step: RequireObject, outcome: Outcome) -> None:
        try:
            await self._client.get(step.kind, step.name, step.namespace)
        except NotFound:
            outcome.trouble = Trouble(step.reason, step.message)
        except Unavailable as error:
            logger.warning("get %s: %s", step.kind.kind, error)
            outcome.broken = True
        except ApiError as error:
            message = f"cannot get {step.kind.kind} {step.name}: {error.message}"
            outcome.trouble = Trouble(step.reason, message)

    async def _require_absent(self, step: RequireAbsent, job: Raw, outcome: Outcome) -> None:
        try:
            found = await self._client.get(step.kind, step.name, step.namespace)
        except NotFound:
            return
        except Unavailable as error:
            logger.warning("get %s: %s", step.kind.kind, error)
            outcome.broken = True
            return
        except ApiError as error:
            message = f"cannot get {step.kind.kind} {step.name}: {error.message}"
            outcome.trouble = Trouble("FailedGet", message)
            return
        if controls_raw(_meta(job), found):
            head = {"apiVersion": step.kind.api_version, "kind": step.kind.kind}
            outcome.finds.append((step.kind, found | head))

    async def _counted(
        self, verb: str, kind: Kind, outcome: Outcome, write: Callable[[], Awaitable[None]]
    ) -> None:
        result = "done"
        try:
            await write()
        except Conflict as error:
            logger.debug("%s %s: %s", verb, kind.kind, error)
            outcome.outdated = True
            result = "conflict"
        except Unavailable as error:
            logger.warning("%s %s: %s", verb, kind.kind, error)
            outcome.broken = True
            result = "unavailable"
        except ApiError as error:
            logger.warning("%s %s: %s", verb, kind.kind, error)
            reason = {"create": "FailedCreate", "delete": "FailedDelete"}.get(verb, "FailedUpdate")
            outcome.trouble = Trouble(reason, f"cannot {verb} {kind.kind}: {error.message}")
            result = "refused"
        self._metrics.writes.labels(verb, kind.kind, result).inc()

    async def _create(self, step: CreateObject, outcome: Outcome) -> None:
        namespace, manifest = step.manifest["metadata"]["namespace"], step.manifest
        if step.keys is not None:
            pair = await self._make_keys(step.keys.algorithm)
            manifest = with_keys(manifest, step.keys, *pair)
        try:
            made = await self._client.create(step.kind, manifest, namespace)
        except AlreadyExists:
            try:
                found = await self._client.get(step.kind, step.name, namespace)
            except NotFound:
                outcome.outdated = True  # it went away between the two; the next pass creates it
                return
            head = {"apiVersion": step.kind.api_version, "kind": step.kind.kind}
            outcome.finds.append((step.kind, found | head))
            return
        outcome.written.append((step.kind, namespace, step.name, made["metadata"]["uid"], made))

    async def _update(self, step: UpdateObject, outcome: Outcome) -> None:
        try:
            made = await self._client.patch(step.kind, step.name, step.namespace, step.patch)
        except NotFound:
            outcome.outdated = True
            return
        uid = made["metadata"]["uid"]
        outcome.written.append((step.kind, step.namespace, step.name, uid, made))

    async def _delete(self, step: DeleteObject, outcome: Outcome) -> None:
        try:
            await self._client.delete(
                step.kind,
                step.name,
                step.namespace,
                uid=step.uid,
                propagation=step.propagation,
                resource_version=step.resource_version,
            )
        except NotFound:
            return
        outcome.written.append((step.kind, step.namespace, step.name, step.uid, None))

    async def _status(self, step: PatchStatus, job: Raw, outcome: Outcome) -> None:
        head = {"apiVersion": JOB.api_version, "kind": JOB.kind, "status": step.status}
        try:
            made = await self._client.update_status(JOB, job | head)
        except NotFound:
            outcome.outdated = True
            return
        before = ((job.get("status") or {}).get("state") or {}).get("phase")
        if (phase := step.status["state"]["phase"]) != before:
            self._metrics.phases.labels(phase).inc()
        meta = made["metadata"]
        outcome.written.append((JOB, meta["namespace"], meta["name"], meta["uid"], made))


def _meta(job: Raw) -> ObjectMeta:
    meta = job["metadata"]
    return ObjectMeta(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        uid=meta.get("uid", ""),
        resource_version=meta.get("resourceVersion", ""),
    )
