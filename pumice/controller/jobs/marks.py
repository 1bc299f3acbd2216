"""`status.controlledResources`: what the controller has made for a Job, and what it notes for itself.

Volcano keeps `plugin-<name>` for each plugin at work and `volume-pvc-<claim>` for each volume there, as
long as the Job lives. Pumice adds notes of its own: which pods there were (`job_pods`), how often they were
restarted (`retries`), which restart is under way, the last Command, when the Job began and ended (`status`),
and what is doubtful about the plugins' arguments. The latter stays for as long as the Job does, where its
events are gone after an hour; a Job's conditions have no room for it, but for phases.
"""

from collections.abc import Iterable, Mapping

from pumice.api.pods import Pod
from pumice.controller.jobs import job_pods, orders, restarts, retries
from pumice.controller.jobs.happenings import completed
from pumice.controller.jobs.restarts import Restart
from pumice.controller.jobs.retries import RestartCount, Unit
from pumice.controller.jobs.situation import Situation
from pumice.controller.jobs.status import COMPLETION, START
from pumice.controller.jobs.volumes import job_volumes

__all__ = ["DOUBTS", "of_ended", "of_living", "of_passing", "of_restart"]

DOUBTS = "pumice.dev/plugin-warnings"
"""Key of the note of what is doubtful about plugins."""

_LONGEST = 1000
"""Characters of that note; `pumice lint` shows all of it."""

_LASTING = (orders.NOTE, DOUBTS, START, COMPLETION)
_LIVING = (
    restarts.NOTE,
    retries.NOTE,
    job_pods.PODS,
    job_pods.SUCCEEDED,
    job_pods.EVICTED,
    job_pods.COMPLETED,
)
"""Notes that say something of an incarnation."""


def of_living(
    case: Situation,
    leaving: Iterable[Pod] = (),
    evicted: Mapping[str, float] | None = None,
) -> dict[str, str]:
    """While the Job is, or is about to be, `Pending` or `Running`.

    Args:
        case: The Job.
        leaving: Pods that are about to be removed.
        evicted: Pods that were just found missing and for which a policy waits.
    """
    marks = {f"plugin-{name}": name for name in case.plugin_names}
    marks |= {f"volume-pvc-{each.claim}": each.claim for each in job_volumes(case.job)}
    names = {pod.metadata.name for pod in leaving}
    return _noted(case) | marks | case.job_pods.living(names, evicted, _completed(case))


def of_passing(case: Situation, *, command: str = "") -> dict[str, str]:
    """While the pods are being removed that have not finished: what there was, and what has succeeded.

    Args:
        case: The Job.
        command: Uid of the Command that is being carried out, if one is.
    """
    return _beside(case, command) | case.job_pods.ended()


def of_restart(
    case: Situation,
    restart: Restart,
    *,
    over: bool = False,
    command: str = "",
    tallies: Mapping[Unit, RestartCount] | None = None,
) -> dict[str, str]:
    """While pods are being replaced.

    Args:
        case: The Job.
        restart: The restart that is under way.
        over: Whether all that it replaces is on its way, so that this is written for the last time.
        command: Uid of the Command that is being carried out, if one is.
        tallies: How often what was restarted; as noted before when None.
    """
    marks = _beside(case, command)
    if not over:
        marks[restarts.NOTE] = restart.note(case.job_pods.names)
    if restart.targeted:
        covers = restart.covers(case.job, case.job_pods.names)
        marks |= case.job_pods.without(covers, _completed(case))
        stored = case.job.status.controlled_resources or {}
        text = stored.get(retries.NOTE, "") if tallies is None else retries.write(tallies)
        if text:
            marks[retries.NOTE] = text
    elif restart == restarts.RESUME:
        marks |= case.job_pods.ended()
    return marks


def of_ended(case: Situation) -> dict[str, str]:
    """When nothing is left but finished pods and claims."""
    marks = of_passing(case)
    return {key: text for key, text in marks.items() if not key.startswith("plugin-")}


def _completed(case: Situation) -> dict[str, float]:
    return completed(case.job, case.pods, case.job_pods, case.now)


def _beside(case: Situation, command: str) -> dict[str, str]:
    """All notes but those of an incarnation."""
    stored = case.job.status.controlled_resources or {}
    marks = {key: text for key, text in stored.items() if key not in _LIVING}
    if command:
        marks[orders.NOTE] = command
    return marks


def _noted(case: Situation) -> dict[str, str]:
    stored = case.job.status.controlled_resources or {}
    noted = {key: stored[key] for key in (*_LASTING, retries.NOTE) if key in stored}
    if case.doubts:
        text = "; ".join(case.doubts)
        noted[DOUBTS] = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return noted
