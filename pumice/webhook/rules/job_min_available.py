"""`minAvailable` of a Job that is scaled: as long as nobody has set it, it follows the tasks.

It is written by default when the Job is made, as what its tasks need together. A manifest without it
that is applied again with other replicas leaves the stored value alone, which then is too large or too
small, though the user never wrote it. The API server notes in the managed fields who has set a field,
and what admission wrote is nobody's.
"""

from collections.abc import Sequence

import msgspec

from pumice.webhook.rules.drafts import DraftMeta, DraftSpec

__all__ = ["follows"]


class _OwnedSpec(msgspec.Struct, frozen=True):
    min_available: dict[str, msgspec.Raw] | None = msgspec.field(
        default=None, name="f:minAvailable"
    )


class _Owned(msgspec.Struct, frozen=True):
    """Fields that somebody has set."""

    spec: _OwnedSpec | None = msgspec.field(default=None, name="f:spec")


_owned = msgspec.json.Decoder(_Owned)


def follows(
    metadata: DraftMeta | None, spec: DraftSpec, stored: DraftSpec, minima: Sequence[int]
) -> bool:
    """Whether an update leaves `minAvailable` alone, and it is the default that admission wrote.

    Args:
        metadata: Of the Job as it came.
        spec: The Job's spec as it came.
        stored: Its spec as it is stored.
        minima: What each stored task needs.
    """
    if spec.min_available is None or spec.min_available != stored.min_available:
        return False
    if sum(minima) != stored.min_available:
        return False
    entries = (metadata.managed_fields if metadata is not None else None) or ()
    return bool(entries) and not any(_sets(entry.fields_v1) for entry in entries)


def _sets(fields: msgspec.Raw) -> bool:
    """Whether fields that somebody owns include `spec.minAvailable`; unreadable ones may."""
    try:
        owned = _owned.decode(fields)
    except (ValueError, RecursionError):
        return True
    return owned.spec is not None and owned.spec.min_available is not None
