"""The action that is due: events of a Job, matched with its policies.

Targeted restarts that are due in the same pass become one restart: pods that failed together are created again
together, and the Job enters `Restarting` once. An action on the whole Job is taken alone and before them: a restart of
a task would also replace the pod for which the Job is to end.

A policy may wait (`timeout`), and a pod that fails again waits (`retries`). Both follow from the moment at
which something happened, so that a restart of the controller changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pumice.api.meta import format_time
from pumice.controller.jobs import retries
from pumice.controller.jobs.job_events import job_events
from pumice.controller.jobs.orders import Order
from pumice.controller.jobs.phases import PENDING, RUNNING, TARGETED, turning
from pumice.controller.jobs.policies import (
    POD_FAILED,
    POD_PENDING,
    TASK_COMPLETED,
    Policies,
    PolicyChoice,
    PolicyRequest,
    concerns,
    has_policies,
)
from pumice.controller.jobs.restarts import (
    Restart,
    Target,
    restart_for,
    restart_of,
    target_for,
)
from pumice.controller.jobs.retries import Unit
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.sync import DelayedRestarts

__all__ = ["Delayed", "DueAction", "due"]

_SHOWN = 3
"""Number of failures that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueAction:
    """An action that sends the Job to another phase.

    Attributes:
        action: The action.
        why: Why it is taken.
        restart: What it restarts, if it restarts something.
        failed: Failed pods, each with whether it had run for ten minutes.
        gone: Names of pods that do not exist according to the caches.
        order: The Command that requested it.
    """

    action: str
    why: str
    restart: Restart | None = None
    failed: Mapping[Unit, bool] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Delayed:
    """Actions that will be due later.

    Attributes:
        wake: Seconds until the first action is due; None if none will be.
        backoff: Pods that failed again and wait for their restart.
    """

    wake: float | None = None
    backoff: DelayedRestarts | None = None


_Due = tuple[PolicyRequest, PolicyChoice, Target, Unit | None]


def due(case: Situation) -> tuple[DueAction | None, Delayed]:
    """The action that is due now, and the actions that will be due later."""
    if case.phase not in (PENDING, RUNNING) or not has_policies(case.job):
        return None, Delayed()
    wake: float | None = None
    waits: list[tuple[float, PolicyRequest]] = []
    targeted: list[_Due] = []
    policies, names = Policies(case.job), case.job_pods.names
    tallies = {} if case.strict else retries.of(case.job, names)
    actions = turning(case.phase)
    without = [event for event in (POD_PENDING, TASK_COMPLETED) if not concerns(case.job, event)]
    for request in job_events(
        case.job, case.pods, case.job_pods, case.observed.group, without=without
    ):
        choice = policies.choose(request)
        if choice.action not in actions:
            continue
        target = unit = None
        if choice.action in TARGETED:
            target = target_for(choice.action, request.task, request.pod, request.partition)
            if target is None:
                continue  # the event concerns no pod
            if request.event == POD_FAILED:
                unit = retries.unit(target, names)
        tally = tallies.get(unit) if tallies and unit and not request.gone else None
        backoff = retries.delay(tally, request.ran) if tally else 0.0
        if delay := max(choice.delay, backoff):
            if request.since is None:
                continue
            left = request.since + delay - case.now
            if left > 0:
                wake = left if wake is None else min(wake, left)
                if backoff:
                    waits.append((request.since + delay, request))
                continue
        if target is None:
            return _alone(request, choice), Delayed()
        targeted.append((request, choice, target, unit))
    if targeted:
        return _combined(targeted), Delayed()
    return None, Delayed(wake, _message(waits))


def _alone(request: PolicyRequest, choice: PolicyChoice) -> DueAction:
    return DueAction(
        action=choice.action,
        why=_why(request, choice),
        restart=restart_for(choice.action),
        gone=(request.pod,) if request.gone else (),
    )


def _why(request: PolicyRequest, choice: PolicyChoice) -> str:
    return f"{request.detail} ({choice.path})"


def _combined(found: list[_Due]) -> DueAction:
    """One restart of everything that is due."""
    failed: dict[Unit, bool] = {}
    for request, _, _, unit in found:
        if unit is not None:
            failed[unit] = failed.get(unit, True) and retries.rested(request.ran)
    why = "; ".join(_why(request, choice) for request, choice, _, _ in found[:_SHOWN])
    if len(found) > _SHOWN:
        why += f"; and {len(found) - _SHOWN} more"
    return DueAction(
        action=found[0][1].action,
        why=why,
        restart=restart_of(target for _, _, target, _ in found),
        failed=failed,
        gone=tuple(dict.fromkeys(request.pod for request, *_ in found if request.gone)),
    )


def _message(waits: list[tuple[float, PolicyRequest]]) -> DelayedRestarts | None:
    if not waits:
        return None
    moment, request = min(waits, key=lambda each: each[0])
    message = f"{request.detail} again and is restarted at {format_time(moment)}"
    pods = len({each.pod for _, each in waits})
    if pods > 1:
        message += f"; {pods - 1} more pods wait as well"
    return DelayedRestarts(pods, message)
