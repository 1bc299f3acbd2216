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
from pumice.controller.jobs.phases import PENDING, RESTARTING, RUNNING, row
from pumice.controller.jobs.policies import (
    POD_PENDING,
    PolicyChoice,
    PolicyRequest,
    choose,
    concerns,
    has_policies,
)
from pumice.controller.jobs.restarts import Restart, restart_for, together
from pumice.controller.jobs.retries import RestartCount, Unit
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


_Due = tuple[PolicyRequest, PolicyChoice, Restart]


def due(case: Situation) -> tuple[DueAction | None, Delayed]:
    """The action that is due now, and the actions that will be due later."""
    if case.phase not in (PENDING, RUNNING) or not has_policies(case.job):
        return None, Delayed()
    wake: float | None = None
    waits: list[tuple[float, PolicyRequest]] = []
    targeted: list[_Due] = []
    tallies = {} if case.strict else retries.of(case.job, case.job_pods.names)
    pending = concerns(case.job, POD_PENDING)
    for request in job_events(
        case.job, case.pods, case.job_pods, case.observed.group, pending=pending
    ):
        choice = choose(case.job, request)
        leads_to = row(case.phase, choice.action).to
        if not leads_to:
            continue
        restart = restart_for(choice.action, request.task, request.pod, request.partition)
        if leads_to == RESTARTING and restart is None:
            continue  # a targeted restart for an event that concerns no pod
        backoff = _backoff(case, request, restart, tallies)
        if delay := max(choice.delay, backoff):
            if request.since is None:
                continue
            left = request.since + delay - case.now
            if left > 0:
                wake = left if wake is None else min(wake, left)
                if backoff:
                    waits.append((request.since + delay, request))
                continue
        if restart is None or not restart.targeted:
            return _alone(request, choice, restart), Delayed()
        targeted.append((request, choice, restart))
    if targeted:
        return _combined(case, targeted), Delayed()
    return None, Delayed(wake, _message(waits))


def _backoff(
    case: Situation,
    request: PolicyRequest,
    restart: Restart | None,
    tallies: Mapping[Unit, RestartCount],
) -> float:
    """Seconds for which a failed pod waits."""
    if not tallies or restart is None or request.event != "PodFailed" or request.gone:
        return 0.0
    return max(
        (
            retries.delay(tallies.get(unit, RestartCount()), request.ran)
            for unit in retries.units(restart, case.job_pods.names)
        ),
        default=0.0,
    )


def _alone(request: PolicyRequest, choice: PolicyChoice, restart: Restart | None) -> DueAction:
    return DueAction(
        action=choice.action,
        why=f"{request.detail} ({choice.path})",
        restart=restart,
        gone=(request.pod,) if request.gone else (),
    )


def _combined(case: Situation, found: list[_Due]) -> DueAction:
    """One restart of everything that is due."""
    failed: dict[Unit, bool] = {}
    whys: list[str] = []
    for request, choice, restart in found:
        whys.append(f"{request.detail} ({choice.path})")
        if request.event == "PodFailed":
            for unit in retries.units(restart, case.job_pods.names):
                failed[unit] = failed.get(unit, True) and retries.rested(request.ran)
    why = "; ".join(whys[:_SHOWN])
    if len(whys) > _SHOWN:
        why += f"; and {len(whys) - _SHOWN} more"
    return DueAction(
        action=found[0][1].action,
        why=why,
        restart=together(restart for _, _, restart in found),
        failed=failed,
        gone=tuple(dict.fromkeys(request.pod for request, _, _ in found if request.gone)),
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
