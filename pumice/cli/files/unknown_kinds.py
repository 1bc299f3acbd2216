"""Kinds that no API server has, and the kinds that were probably meant.

Kinds of other projects may exist, because their CRDs may be installed. So a kind is refused only if its group is one of
Volcano's, nearly one, or one of Kubernetes' own groups, whose kinds are fixed.
"""

from difflib import SequenceMatcher, get_close_matches

from pumice.api.fields import FieldError, did_you_mean
from pumice.api.kinds import INDEXED_JOB, JOB, POD, VOLCANO, Kind, of_object
from pumice.cli.files.manifests import Raw

__all__ = ["has_tasks", "unknown_kind"]

_JUDGED = (*VOLCANO, POD, INDEXED_JOB)
"""Kinds that may have been meant."""

_GROUPS = frozenset(each.group for each in VOLCANO)
_HEADS = [each.partition(".")[0] for each in sorted(_GROUPS)]
"""`batch`, `scheduling` and other first parts of groups `*.volcano.sh`."""

_FIXED_GROUPS = ("", "core", "apps", "batch")
"""Kubernetes' own groups, and common misspellings of them; no CRD can add a kind to them."""

_THERE = ("v1 Pod", "batch/v1 Job", "batch/v1 CronJob", "batch/v1beta1 CronJob")
"""The kinds of these groups that have a name of `_JUDGED`."""


def unknown_kind(manifest: Raw) -> FieldError | None:
    """The error for an object of a kind that no API server has; None if a server may have it."""
    version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
    if of_object(manifest) is not None or not _is_slip(version, kind):
        return None
    spelt = f"{version} {kind}"
    here = [each for each in _JUDGED if each.api_version == version]
    meant = _named(kind) or [each for each in here if kind.endswith(each.kind)]
    if JOB in meant and has_tasks(manifest):
        meant = [JOB]
    if meant:
        choices = [f"{each.api_version} {each.kind}" for each in meant]
        nearest = max(choices, key=lambda each: SequenceMatcher(None, each, spelt).ratio())
        hint = f' (did you mean "{nearest}"?)'
    elif here:
        hint = did_you_mean(kind, [each.kind for each in here])
    else:
        hint = did_you_mean(version, [each.api_version for each in VOLCANO])
    path = "kind" if here else "apiVersion"
    return FieldError(path, f'there is no kind "{spelt}"{hint}', "SCHEMA-KIND")


def has_tasks(manifest: Raw) -> bool:
    """True if an object has tasks; of all kinds of Jobs only Volcano's have."""
    spec = manifest.get("spec")
    return isinstance(spec, dict) and "tasks" in spec


def _is_slip(version: str, kind: str) -> bool:
    """True if an unknown kind is in a group of Volcano's, nearly in one, or in a group whose kinds are fixed."""
    group, slash, _ = version.lower().rpartition("/")
    if not slash and "." in version:
        group = version.lower()  # without a version
    if group in _GROUPS:
        return True
    named = _named(kind)
    if group in _FIXED_GROUPS:
        return bool(named) and f"{version} {kind}" not in _THERE
    if not any(get_close_matches(label, ["volcano"], cutoff=0.7) for label in group.split(".")):
        return False
    # Volcano has further groups, such as nodeinfo.volcano.sh, with kinds of their own.
    return bool(named or get_close_matches(group.partition(".")[0], _HEADS, cutoff=0.75))


def _named(kind: str) -> list[Kind]:
    """Kinds with a name or plural, in any case."""
    return [each for each in _JUDGED if kind.lower() in (each.kind.lower(), each.plural)]
