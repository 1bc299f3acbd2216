"""The action that is due: by a Command, or by events of a Job, matched with its policies.

Targeted restarts that are due in the same pass become one restart: pods that failed together are created again
together, and the Job enters `Restarting` once. An action on the whole Job is taken alone and before them: a restart of
a task would also replace the pod for which the Job is to end.

A policy may wait (`timeout`), and a pod that fails again waits (`restart_budgets`). Both follow from the moment at
which something happened, so that a restart of the controller changes nothing.

A Command is carried out exactly once. Its uid is written to the Job's status together with the phase that it leads to;
only then is it deleted. If the controller stops in between, the next one sees the uid and only deletes the Command.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from pumice.api.commands import Command, misdirected, oldest, targets
from pumice.api.failures import grouped
from pumice.api.fields import did_you_mean
from pumice.api.jobs import ACTIONS, Job
from pumice.api.kinds import JOB
from pumice.api.messages import listed
from pumice.api.meta import format_time
from pumice.controller.jobs import restart_budgets
from pumice.controller.jobs.escalation import after_failure, evictions_that_wait
from pumice.controller.jobs.job_events import job_events
from pumice.controller.jobs.notes import COMMAND
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
from pumice.controller.jobs.restart_budgets import RestartUnit
from pumice.controller.jobs.restart_targets import (
    Restart,
    Target,
    restart_for,
    restart_of,
    target_for,
)
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.sync import DelayedRestarts


@dataclass(frozen=True, slots=True)
class Order:
    """The Command to handle now.

    Attributes:
        command: The Command.
        action: Action to take; empty when there is nothing to do but delete it.
        refusal: Why it is refused, empty when it is not.
    """

    command: Command
    action: str = ""
    refusal: str = ""


def next_order(job: Job, commands: Sequence[Command]) -> Order | None:
    """The oldest Command for a Job, and the action to take."""
    command = oldest(each for each in commands if targets(each) == job.metadata.name)
    if command is None:
        return None
    if refusal := misdirected(command, JOB, job.metadata):
        return Order(command, refusal=refusal)
    if (job.status.controlled_resources or {}).get(COMMAND) == command.metadata.uid:
        return Order(command)
    if command.action in TARGETED:
        return Order(
            command, refusal=f"action {command.action} needs a pod and a Command names none"
        )
    if command.action not in ACTIONS:
        hint = did_you_mean(command.action, ACTIONS)
        return Order(command, refusal=f"action {command.action!r} is unknown{hint}")
    return Order(command, action=command.action)


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
        since: Since when failed pods do not run, by name. The time for which no controller acted does not count.
        gone: Names of pods that do not exist according to the caches.
        order: The Command that requested it.
    """

    action: str
    why: str
    restart: Restart | None = None
    failed: Mapping[RestartUnit, bool] = field(default_factory=dict)
    since: Mapping[str, float] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    order: Order | None = None


class Delayed(msgspec.Struct, frozen=True):
    """Actions that will be due later.

    Attributes:
        wake: Seconds until the first action is due; None if none will be.
        backoff: Pods that failed again and wait for their restart.
    """

    wake: float | None = None
    backoff: DelayedRestarts | None = None


@dataclass(slots=True)
class _Together:
    """One restart of everything that is due. Events are not kept: there may be one for each pod."""

    action: str = ""
    found: int = 0
    whys: list[str] = field(default_factory=list)
    failures: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    targets: list[Target] = field(default_factory=list)
    failed: dict[RestartUnit, bool] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)

    def add(
        self, request: PolicyRequest, choice: PolicyChoice, target: Target, unit: RestartUnit | None
    ) -> None:
        """Add what an event calls for.

        Args:
            request: The event.
            choice: The action.
            target: What it restarts.
            unit: The unit that failed; None if the pod did not fail.
        """
        if request.event == POD_FAILED:
            self.failures[choice.path][request.pod] = request.detail
        else:
            if self.found < _SHOWN:
                self.whys.append(f"{request.detail} ({choice.path})")
            self.found += 1
        self.action = self.action or choice.action
        self.targets.append(target)
        if unit is not None:
            self.failed[unit] = self.failed.get(unit, True) and restart_budgets.rested(request.ran)
        if request.gone:
            self.gone[request.pod] = None

    def decision(self, situation: Situation) -> DueAction:
        """The restart."""
        whys = [_failed(situation, pods, path) for path, pods in self.failures.items()]
        whys += self.whys
        if self.found > _SHOWN:
            whys.append(f"and {self.found - _SHOWN} more")
        return DueAction(
            action=self.action,
            why="; ".join(whys),
            restart=restart_of(self.targets),
            failed=self.failed,
            since=self.since,
            gone=tuple(self.gone),
        )


@dataclass(slots=True)
class _Later:
    """What is not due yet: seconds until the first of it is, and failed pods with the moments of their restarts."""

    now: float
    wake: float | None = None
    pods: list[tuple[float, PolicyRequest]] = field(default_factory=list)

    def waits_until(self, moment: float, failed: PolicyRequest | None = None) -> bool:
        """Whether a moment, of the restart of a failed pod if one is given, is still to come; it is noted then."""
        left = moment - self.now
        if left <= 0:
            return False
        self.wake = left if self.wake is None else min(self.wake, left)
        if failed is not None:
            self.pods.append((moment, failed))
        return True


def due(situation: Situation) -> tuple[DueAction | None, Delayed]:
    """The action that is due now, and the actions that will be due later."""
    if situation.phase not in (PENDING, RUNNING) or not has_policies(situation.job):
        return None, Delayed()
    later = _Later(situation.now)
    wider: list[tuple[PolicyRequest, PolicyChoice]] = []
    together = _Together()
    policies, names = Policies(situation.job), situation.job_pods.names
    tallies = {} if situation.strict else restart_budgets.of(situation.job, names)
    actions, evictions = turning(situation.phase), evictions_that_wait(situation.job, policies)
    without = [
        event for event in (POD_PENDING, TASK_COMPLETED) if not concerns(situation.job, event)
    ]
    for request in job_events(
        situation.job,
        situation.wanted_pods,
        situation.job_pods,
        situation.observed.group,
        without=without,
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
                unit = restart_budgets.restart_unit(target, names)
        # If it failed earlier and is only pending since it was created again, it is not known how long it ran.
        failed = unit and not request.gone and request.ran is not None
        tally = tallies.get(unit) if tallies and unit and failed else None
        backoff = restart_budgets.delay(tally, request.ran) if tally else 0.0
        if backoff and request.task in evictions:
            wider += after_failure(request, choice, evictions[request.task], backoff)
        if delay := max(choice.delay, backoff):
            if request.since is None:
                continue
            if later.waits_until(request.since + delay, request if backoff else None):
                continue
        if target is None:
            return _alone(situation, request, choice), Delayed()
        together.add(request, choice, target, unit)
        if request.event == POD_FAILED:
            together.since[request.pod] = situation.now - backoff
    for request, choice in wider:
        target = target_for(choice.action, request.task, request.pod, request.partition)
        if later.waits_until((request.since or situation.now) + choice.delay):
            continue
        if target is None:
            return _alone(situation, request, choice), Delayed()
        together.add(request, choice, target, None)
    if together.targets:
        return together.decision(situation), Delayed()
    return None, Delayed(later.wake, _message(later.pods))


def _alone(situation: Situation, request: PolicyRequest, choice: PolicyChoice) -> DueAction:
    why = f"{request.detail} ({choice.path})"
    if request.event == POD_FAILED:
        gone = situation.job_pods.failed.get(request.pod)
        alike = grouped(situation.staying() if gone is None else [gone])
        whys = [f"{each} ({choice.path})" for each in alike if request.pod in each.pods]
        why = whys[0] if whys else why
    return DueAction(
        action=choice.action,
        why=why,
        restart=restart_for(choice.action),
        gone=(request.pod,) if request.gone else (),
    )


def _failed(situation: Situation, details: Mapping[str, str], path: str) -> str:
    """Which pods failed and why, and the policy that concerns it.

    Args:
        situation: The Job.
        details: What is known of pods whose failure cannot be read any more, by name.
        path: Path of the policy.
    """
    gone = situation.job_pods.failed
    pods = [pod for pod in situation.wanted_pods if pod.metadata.name in details]
    pods += [gone[name] for name in details if name in gone]
    parts = list(map(str, grouped(pods))) or list(details.values())
    return f"{listed(parts, '; ')} ({path})"


def _message(waits: list[tuple[float, PolicyRequest]]) -> DelayedRestarts | None:
    if not waits:
        return None
    moment, request = min(waits, key=lambda each: each[0])
    message = f"pod {request.pod} failed again and is restarted at {format_time(moment)}"
    pods = len({each.pod for _, each in waits})
    if pods > 1:
        message += f"; {pods - 1} more pods wait as well"
    return DelayedRestarts(pods, message)
