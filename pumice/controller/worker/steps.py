"""Steps of a plan as requests to the API server, and the meaning of the responses.

The response to a sent write is awaited also if the process no longer leads; see `cluster.sent`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from pumice.api import keys
from pumice.api.kinds import JOB, PERSISTENT_VOLUME_CLAIM, POD, SECRET, Kind
from pumice.api.meta import ObjectMeta, Raw
from pumice.cluster.client import Client
from pumice.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from pumice.cluster.events import EventRecorder, Reference
from pumice.cluster.lifecycle import SentRequests
from pumice.controller.jobs.phases import phase_of
from pumice.controller.jobs.situation import PlanFailure
from pumice.controller.objects import controls_raw
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    PatchStatus,
    RecordEvent,
    RequeueAfter,
    RequireAbsent,
    RequireObject,
    Step,
    UpdateObject,
    changes,
)
from pumice.controller.worker.memory import OwnWrite, PlanOutcome
from pumice.controller.worker.metrics import ControllerMetrics
from pumice.controller.worker.secrets import make_keys, with_keys

logger = logging.getLogger(__name__)

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""Cause with which the API server refuses a creation in a namespace that is being deleted; also the reason of the event."""

QUOTA = (
    "exceeded quota: ",
    "failed quota: ",
    "status unknown for quota: ",
    "insufficient quota to ",
)
"""Parts of messages with which a ResourceQuota refuses a pod; the API server gives no machine-readable reason."""


@dataclass(frozen=True, slots=True)
class StepSender:
    """Sends the steps of plans for objects of one kind; the fields are arguments of `Executor`."""

    client: Client
    recorder: EventRecorder
    metrics: ControllerMetrics
    kind: Kind
    sent: SentRequests

    async def confirm(self, job: Raw, outcome: PlanOutcome) -> None:
        """Ask the API server whether the Job is in the state that was observed."""
        meta = job["metadata"]
        try:
            stored = await self.client.get(self.kind, meta["name"], meta.get("namespace"))
        except NotFound:
            outcome.outdated = True
        except TooManyRequests as error:
            outcome.busy = error.patience
        except ApiError as error:
            logger.warning("get %s: %s", self.kind.kind, error)
            outcome.broken = True
        else:
            outcome.confirmed = stored["metadata"]["resourceVersion"] == meta["resourceVersion"]
            outcome.outdated |= not outcome.confirmed

    async def send(self, step: Step, job: Raw, outcome: PlanOutcome) -> None:
        """Carry out a step, and record the result in the outcome."""
        try:
            await self._send(step, job, outcome)
        except asyncio.CancelledError:
            # A task group treats a request that was cancelled from inside as finished.
            outcome.broken = True
            raise

    async def _send(self, step: Step, job: Raw, outcome: PlanOutcome) -> None:
        match step:
            case CreateObject(kind=kind):
                task = _task_of(step)
                if task not in outcome.over_quota:
                    create = partial(self._create, step, outcome)
                    await self.sent.send(self._write("create", kind, outcome, create, task))
            case UpdateObject(kind=kind):
                update = partial(self._update, step, outcome)
                await self.sent.send(self._write("update", kind, outcome, update))
            case DeleteObject(kind=kind):
                delete = partial(self._delete, step, outcome)
                await self.sent.send(self._write("delete", kind, outcome, delete))
            case PatchStatus():
                patch = partial(self._status, step, job, outcome)
                await self.sent.send(self._write("status", self.kind, outcome, patch))
            case RequireObject() | RequireAbsent():
                await self._require(step, job, outcome)
            case RecordEvent():
                about = Reference.of(self.kind, _meta(job))
                self.recorder.record(about, step.type, step.reason, step.message)
            case RequeueAfter(seconds):
                after = outcome.after
                outcome.after = seconds if after is None else min(after, seconds)

    async def _require(
        self, step: RequireObject | RequireAbsent, job: Raw, outcome: PlanOutcome
    ) -> None:
        found: Raw | None = None
        try:
            found = await self.client.get(step.kind, step.name, step.namespace)
        except NotFound:
            if isinstance(step, RequireObject):
                outcome.trouble = PlanFailure(step.reason, step.message)
                return
        except TooManyRequests as error:
            outcome.busy = error.patience
            return
        except Unavailable as error:
            logger.warning("get %s: %s", step.kind.kind, error)
            outcome.broken = True
            return
        except ApiError as error:
            reason = step.reason if isinstance(step, RequireObject) else "FailedGet"
            message = f"cannot get {step.kind.kind} {step.name}: {error.message}"
            outcome.trouble = PlanFailure(reason, message)
            return
        if isinstance(step, RequireObject):
            return
        if found is not None and controls_raw(_meta(job), found):
            outcome.finds.append((step.kind, found | step.kind.type_meta))
        else:
            outcome.absent.add(step.name)

    async def _write(
        self,
        verb: str,
        kind: Kind,
        outcome: PlanOutcome,
        write: Callable[[], Awaitable[None]],
        task: str = "",
    ) -> None:
        """Send a write, take the meaning of its response in, and count it."""
        result = "done"
        try:
            await write()
        except Conflict as error:
            logger.debug("%s %s: %s", verb, kind.kind, error)
            outcome.outdated = True
            result = "conflict"
        except TooManyRequests as error:
            logger.info("%s %s: %s", verb, kind.kind, error)
            outcome.busy = max(outcome.busy or 0.0, error.patience)
            result = "busy"
        except Unavailable as error:
            logger.warning("%s %s: %s", verb, kind.kind, error)
            outcome.broken = True
            result = "unavailable"
        except ApiError as error:
            logger.warning("%s %s: %s", verb, kind.kind, error)
            reason = {"create": "FailedCreate", "delete": "FailedDelete"}.get(verb, "FailedUpdate")
            if any(cause.get("reason") == NAMESPACE_TERMINATING for cause in error.causes):
                reason = NAMESPACE_TERMINATING
            trouble = PlanFailure(reason, f"cannot {verb} {kind.kind}: {error.message}")
            if task and _is_over_quota(error):
                outcome.over_quota.setdefault(task, trouble)
            elif verb == "create" and kind == JOB:
                outcome.refused = outcome.refused or trouble
            else:
                outcome.trouble = trouble
            result = "refused"
        self.metrics.writes.labels(verb, kind.kind, result).inc()

    async def _create(self, step: CreateObject, outcome: PlanOutcome) -> None:
        namespace, manifest = step.manifest["metadata"].get("namespace", ""), step.manifest
        if step.keys is not None:
            pair = await make_keys(step.keys.algorithm)
            manifest = with_keys(manifest, step.keys, *pair)
        try:
            made = await self.client.create(
                step.kind, manifest, namespace, metadata_only=_is_watched(step.kind)
            )
        except AlreadyExists:
            try:
                found = await self.client.get(step.kind, step.name, namespace)
            except NotFound:
                outcome.outdated = True  # it went away between the two; the next pass creates it
                return
            outcome.finds.append((step.kind, found | step.kind.type_meta))
            return
        outcome.written.append(OwnWrite.of(step.kind, namespace, made))

    async def _update(self, step: UpdateObject, outcome: PlanOutcome) -> None:
        try:
            made = await self.client.patch(
                step.kind,
                step.name,
                step.namespace,
                step.patch,
                metadata_only=_is_watched(step.kind),
            )
        except NotFound:
            outcome.outdated = True
            return
        outcome.written.append(OwnWrite.of(step.kind, step.namespace, made))

    async def _delete(self, step: DeleteObject, outcome: PlanOutcome) -> None:
        try:
            await self.client.delete(
                step.kind,
                step.name,
                step.namespace,
                uid=step.uid,
                propagation=step.propagation,
                resource_version=step.resource_version,
                metadata_only=True,
            )
        except NotFound:
            return
        outcome.written.append(OwnWrite(step.kind, step.namespace, step.name, step.uid, ""))

    async def _status(self, step: PatchStatus, job: Raw, outcome: PlanOutcome) -> None:
        meta, stored = job["metadata"], job.get("status") or {}
        namespace = meta.get("namespace", "")
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"]},
            "status": changes(stored, step.status),
        }
        try:
            made = await self.client.patch(
                self.kind,
                meta["name"],
                namespace,
                patch,
                subresource="status",
                metadata_only=True,
            )
        except NotFound:
            outcome.outdated = True
            return
        outcome.confirmed = outcome.wrote_status = True
        if self.kind == JOB and (phase := phase_of(step.status)) != phase_of(stored):
            self.metrics.entered(phase, job)
        outcome.written.append(OwnWrite.of(self.kind, namespace, made)._replace(made=None))


def _is_over_quota(error: ApiError) -> bool:
    """True if a ResourceQuota refuses a pod: it has no room, or asks for requests or limits that the pod lacks."""
    return isinstance(error, Forbidden) and any(text in error.message for text in QUOTA)


def _is_watched(kind: Kind) -> bool:
    """True if a cache shows what was written. Claims and Secrets are not watched; their responses are kept."""
    return kind not in (PERSISTENT_VOLUME_CLAIM, SECRET)


def _task_of(step: CreateObject) -> str:
    """Task of a pod that is to be created; empty for other kinds."""
    if step.kind != POD:
        return ""
    return str((step.manifest["metadata"].get("annotations") or {}).get(keys.TASK_SPEC, ""))


def _meta(job: Raw) -> ObjectMeta:
    meta = job["metadata"]
    return ObjectMeta(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        uid=meta.get("uid", ""),
        resource_version=meta.get("resourceVersion", ""),
    )
