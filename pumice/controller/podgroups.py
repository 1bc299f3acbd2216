"""PodGroups: updates of stored ones, and what their status means.

Only fields that follow from the owner are kept current; everything else of a group belongs to the scheduler. A restart
of a Job keeps the group, its age and so its position in the queue, but the group must enqueue again. The group has the
version for which it was last reset, written together with the phase, so the reset happens once for each incarnation.

If its namespace names a queue, admission moves a group from queue `default` to that queue. It stays there.

Labels and annotations of the owner are copied to the group. The annotation `pumice.dev/copied` lists their keys, so that a
key that the owner no longer has is removed while keys that others added stay.
"""

from collections.abc import Iterable, Iterator

from pumice.api import keys
from pumice.api.meta import Raw
from pumice.controller.plan import difference

BROKEN = "Unknown"
"""Phase of a group some of whose pods run while the rest cannot be placed."""

ADMITTED = frozenset({"Inqueue", "Running", BROKEN, "Completed"})
"""Phases in which the scheduler allows the creation of the group's pods."""

COPIED = "pumice.dev/copied"
"""Annotation of a group: keys of the labels, then of the annotations, that were copied from its Job."""

_WHOLE = ("minTaskMember", "minResources")
_HEAD = ("labels", "annotations")


def update(stored: Raw, target: Raw) -> Raw:
    """The merge patch that updates a stored group; empty if nothing differs.

    The status is changed only to reset a group of an earlier incarnation to `Pending`.
    """
    meta = stored["metadata"]
    patch: Raw = {}
    wish = target["spec"] | {"queue": queue_of(target["spec"]["queue"], stored)}
    if spec := difference(stored.get("spec") or {}, wish, _WHOLE):
        patch["spec"] = spec
    changed = difference(meta, {key: target["metadata"][key] for key in _HEAD})
    for section, gone in _no_longer_copied(meta, target["metadata"]):
        changed[section] = changed.get(section, {}) | dict.fromkeys(gone)
    if not is_current(stored, target):
        patch["status"] = {"phase": "Pending", "conditions": None}
    if changed or patch:
        patch["metadata"] = changed | {
            "uid": meta.get("uid"),
            "resourceVersion": meta.get("resourceVersion"),
        }
    return patch


def note_of_copies(labels: Iterable[str], annotations: Iterable[str]) -> dict[str, str]:
    """The annotation that lists the copied keys; none if there are none."""
    listed = f"{','.join(sorted(labels))};{','.join(sorted(annotations))}"
    return {COPIED: listed} if listed != ";" else {}


def is_current(stored: Raw, target: Raw) -> bool:
    """True if a stored group belongs to the Job with this uid."""
    return _version(stored) == _version(target)


def queue_of(chosen: str | None, group: Raw | None) -> str:
    """The queue of a Job: the one that it names, or else the one of its group.

    Args:
        chosen: The Job's queue; `default` or nothing means that it chose none.
        group: Its PodGroup, when there is one.
    """
    if chosen and chosen != keys.DEFAULT_QUEUE:
        return chosen
    given = ((group or {}).get("spec") or {}).get("queue")
    return str(given or keys.DEFAULT_QUEUE)


def phase_of(group: Raw) -> str:
    """Phase of a group; `Pending` if the scheduler has not set one."""
    return str((group.get("status") or {}).get("phase") or "Pending")


def condition_of(group: Raw) -> tuple[str, str] | None:
    """Reason and message of the newest condition, if it says that the group cannot be placed."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    standing = [each for each in conditions if each.get("status") == "True"]
    if not standing:
        return None
    # Times have whole seconds only; among equals the later entry is the newer one.
    newest = max(reversed(standing), key=lambda each: str(each.get("lastTransitionTime") or ""))
    if newest.get("type") == "Scheduled":
        return None
    return str(newest.get("reason") or newest.get("type")), str(newest.get("message") or "")


def _no_longer_copied(stored: Raw, target: Raw) -> Iterator[tuple[str, list[str]]]:
    """Copied keys that the Job no longer has, by section of the metadata."""
    noted = str((stored.get("annotations") or {}).get(COPIED, "")).partition(";")
    for section, text in zip(_HEAD, (noted[0], noted[2]), strict=True):
        had = {*text.split(","), COPIED} if section == "annotations" else set(text.split(","))
        gone = sorted((had & (stored.get(section) or {}).keys()) - target[section].keys())
        if gone:
            yield section, gone


def _version(group: Raw) -> str:
    return str((group["metadata"].get("annotations") or {}).get(keys.JOB_VERSION, "0"))
