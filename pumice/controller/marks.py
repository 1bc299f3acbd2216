"""`status.controlledResources`: what the controller has made for a Job, and what it notes for itself.

Volcano keeps `plugin-<name>` for each plugin at work and `volume-pvc-<claim>` for each volume there, as
long as the Job lives. Pumice adds notes of its own: of a restart under way, of the last Command, and of
what is doubtful about the plugins' arguments. The latter stays for as long as the Job does, where its events
are gone after an hour; a Job's conditions have no room for it, but for phases.
"""

from pumice.controller import commands, restarts
from pumice.controller.situation import Situation
from pumice.controller.volumes import job_volumes

__all__ = ["DOUBTS", "of_ended", "of_living", "of_passing"]

DOUBTS = "pumice.dev/plugin-warnings"
"""Key of the note of what is doubtful about plugins."""

_LONGEST = 1000
"""Characters of that note; whoever reads more would rather ask `pumice lint`."""


def of_living(case: Situation) -> dict[str, str]:
    """While the Job is, or is about to be, `Pending` or `Running`."""
    marks = {f"plugin-{name}": name for name in case.plugin_names}
    marks |= {f"volume-pvc-{each.claim}": each.claim for each in job_volumes(case.job)}
    return _noted(case) | marks


def of_passing(
    case: Situation, *, restart: restarts.Restart | None = None, command: str = ""
) -> dict[str, str]:
    """While pods are being removed: what there was, and why they are.

    Args:
        case: The Job.
        restart: The restart that is under way.
        command: Uid of the Command that is being carried out, if one is.
    """
    stored = case.job.status.controlled_resources or {}
    marks = {key: text for key, text in stored.items() if key != restarts.NOTE}
    if restart is not None:
        marks[restarts.NOTE] = restart.note()
    if command:
        marks[commands.NOTE] = command
    return marks


def of_ended(case: Situation) -> dict[str, str]:
    """When nothing is left but finished pods and claims."""
    marks = of_passing(case)
    return {key: text for key, text in marks.items() if not key.startswith("plugin-")}


def _noted(case: Situation) -> dict[str, str]:
    stored = case.job.status.controlled_resources or {}
    noted = {key: stored[key] for key in (commands.NOTE, DOUBTS) if key in stored}
    if case.doubts:
        text = "; ".join(case.doubts)
        noted[DOUBTS] = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return noted
