"""`status.controlledResources`: objects that the controller created for a Job, and its own notes.

Volcano keeps `plugin-<name>` for each plugin and `volume-pvc-<claim>` for each volume in it until the Job ends. Pumice
adds notes: former pods (`job_pods`), restarts (`restart_budgets`), the current restart, the last Command, when the Job began
and ended (`status`), and warnings about plugin arguments. The warnings stay as long as the Job exists, while events
expire after an hour; a Job's conditions can hold phases only.
"""

from collections.abc import Iterable, Mapping

from pumice.api.messages import listed
from pumice.api.pods import Pod
from pumice.controller.jobs import job_pods, restart_budgets, restart_targets
from pumice.controller.jobs.job_events import completed
from pumice.controller.jobs.restart_budgets import RestartCount, RestartUnit
from pumice.controller.jobs.restart_targets import Restart
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.status import COMPLETION, START
from pumice.controller.jobs.volumes import job_volumes

COMMAND = "pumice.dev/command"
"""Key in `status.controlledResources` of the last Command that was carried out."""

DOUBTS = "pumice.dev/plugin-warnings"
"""Key of the note with warnings about plugins."""

_LONGEST = 1000
"""Maximum length of that note in bytes; `pumice lint` shows all warnings."""

_CLAIMS = 200
"""Maximum number of volumes that are listed: a Job with thousands must have room for its status."""

_LASTING = (COMMAND, DOUBTS, START, COMPLETION)
_LIVING = (
    restart_targets.NOTE,
    restart_budgets.NOTE,
    job_pods.PODS,
    job_pods.SUCCEEDED,
    job_pods.EVICTED,
    job_pods.COMPLETED,
)
"""Notes about the current incarnation."""


def of_living(
    situation: Situation,
    leaving: Iterable[Pod] = (),
    evicted: Mapping[str, float] | None = None,
) -> dict[str, str]:
    """Notes while the Job is, or is about to be, `Pending` or `Running`.

    Args:
        situation: The Job.
        leaving: Pods that are about to be removed.
        evicted: Pods that were just found missing and for which a policy has a timeout.
    """
    notes = {f"plugin-{name}": name for name in situation.plugin_names}
    claims = (each.claim for each in job_volumes(situation.job)[:_CLAIMS])
    notes |= {f"volume-pvc-{claim}": claim for claim in claims}
    names = {pod.metadata.name for pod in leaving}
    return (
        _noted(situation)
        | notes
        | situation.job_pods.running(names.__contains__, evicted or {}, _completed(situation))
    )


def of_passing(situation: Situation, *, command: str = "") -> dict[str, str]:
    """Notes while the unfinished pods are being removed: former and succeeded pods.

    Args:
        situation: The Job.
        command: Uid of the Command that is being carried out, if there is one.
    """
    return _beside(situation, command) | situation.job_pods.ended()


def of_restart(
    situation: Situation,
    restart: Restart,
    *,
    over: bool = False,
    command: str = "",
    tallies: Mapping[RestartUnit, RestartCount] | None = None,
    since: Mapping[str, float] | None = None,
) -> dict[str, str]:
    """Notes while pods are being replaced.

    Args:
        situation: The Job.
        restart: The restart that is under way.
        over: Whether all replaced pods are being removed, so that the note is written for the last time.
        command: Uid of the Command that is being carried out, if one is.
        tallies: Restart counts; the stored ones if None.
        since: Since when replaced pods do not run, if a policy has a timeout; as stored if None.
    """
    notes = _beside(situation, command)
    if not over:
        notes[restart_targets.NOTE] = restart.note(situation.job_pods.names)
    if restart.targeted:
        covers = restart.covers(situation.job, situation.job_pods.names)
        notes |= situation.job_pods.running(
            covers, since or {}, _completed(situation), replaced=since is None
        )
        stored = situation.job.status.controlled_resources or {}
        text = (
            stored.get(restart_budgets.NOTE, "")
            if tallies is None
            else restart_budgets.write(tallies)
        )
        if text:
            notes[restart_budgets.NOTE] = text
    elif restart == restart_targets.RESUME:
        notes |= situation.job_pods.ended()
    return notes


def of_ended(situation: Situation) -> dict[str, str]:
    """Notes when only finished pods and claims are left."""
    notes = of_passing(situation)
    return {key: text for key, text in notes.items() if not key.startswith("plugin-")}


def _completed(situation: Situation) -> dict[str, float]:
    return completed(situation.job, situation.wanted_pods, situation.job_pods, situation.now)


def _beside(situation: Situation, command: str) -> dict[str, str]:
    """All notes except those of an incarnation."""
    stored = situation.job.status.controlled_resources or {}
    notes = {key: text for key, text in stored.items() if key not in _LIVING}
    if command:
        notes[COMMAND] = command
    return notes


def _noted(situation: Situation) -> dict[str, str]:
    stored = situation.job.status.controlled_resources or {}
    noted = {key: stored[key] for key in (*_LASTING, restart_budgets.NOTE) if key in stored}
    if situation.doubts:
        noted[DOUBTS] = listed(situation.doubts, "; ", _LONGEST)
    return noted
