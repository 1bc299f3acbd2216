"""The patch formats other than server-side apply: JSON patch, merge patch, strategic merge patch."""

from typing import Any

import jsonpatch

from pumice.api.raw import merged
from pumice.embedded import statuses
from pumice.embedded.media import MERGE_TYPES
from pumice.embedded.resources import Resource
from pumice.embedded.storage import Obj
from pumice.embedded.strategic import strategic_merge

JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY = MERGE_TYPES
_MAX_OPERATIONS = 10_000


def check_type(resource: Resource, media: str) -> None:
    """Refuse a patch format that the resource does not take.

    Raises:
        ApiStatusError: 415.
    """
    accepted = [
        each for each in MERGE_TYPES if not (each == STRATEGIC_PATCH and resource.strategy.custom)
    ]
    if media not in accepted:
        raise statuses.unsupported_media_type(accepted)


def patched(media: str, obj: Obj, patch: Any) -> Obj:
    """Apply a patch to a private copy of an object.

    Raises:
        ApiStatusError: 400 for a malformed patch, 422 for a patch that cannot be applied.
    """
    if media == JSON_PATCH:
        return _json_patched(obj, patch)
    if not isinstance(patch, dict):
        raise statuses.bad_request("error decoding patch: expected an object")
    if media == STRATEGIC_PATCH:
        try:
            return strategic_merge(obj, patch)
        except (AttributeError, TypeError) as error:
            # Directives and keyed lists have a fixed form; other values fail and are treated as plain values.
            raise statuses.bad_request(f"the patch has the wrong form: {error}") from error
    return merged(obj, patch)


def _json_patched(obj: Obj, patch: Any) -> Obj:
    if not isinstance(patch, list):
        raise statuses.bad_request("error decoding patch: expected a list of operations")
    if len(patch) > _MAX_OPERATIONS:
        raise statuses.ApiStatusError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, "
            f"got {len(patch)}",
        )
    try:
        result = jsonpatch.JsonPatch(patch).apply(obj, in_place=True)
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        AttributeError,
        KeyError,
        TypeError,
    ) as error:
        raise statuses.ApiStatusError(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
            {},
        ) from error
    if not isinstance(result, dict):
        raise statuses.bad_request("the patched object must be an object")
    return result
