"""Questions: the requests of admission reviews, decoded in one pass directly into structs."""

import re
from typing import Any, Generic, TypeVar

import msgspec

from pumice.api import reviews
from pumice.api.meta import ApiStruct
from pumice.api.reviews import GroupVersionResource

_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([ !#-\[\]-~]{1,128})"')
_NEAR = 1024
"""Number of bytes within which an API server has written the uid."""

T = TypeVar("T")
Other = TypeVar("Other")

UNREADABLE = (ValueError, RecursionError)
"""Exceptions of decoding: invalid JSON, invalid UTF-8, wrong types, excessive numbers and nesting."""


class Question(ApiStruct, Generic[T], frozen=True):
    """The request of a review; `object` and `old_object` are None if the operation has none, which their type allows.

    Where the type is `msgspec.Raw`, they are raw JSON, and may be `null`; see `bare`.
    """

    uid: str = ""
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    object: T = None  # type: ignore[assignment]
    old_object: T = None  # type: ignore[assignment]

    @property
    def stored(self) -> T | None:
        """The stored object; None for a new one, also if the review contains one."""
        return None if self.operation == "CREATE" else self.old_object


class Envelope(ApiStruct, Generic[T], frozen=True):
    """A review with its question."""

    api_version: str = ""
    kind: str = ""
    request: Question[T] | None = None


class UnreadableError(ValueError):
    """An object with invalid JSON or UTF-8 in a part that was not read before."""


Source = bytes | msgspec.Raw
"""Source of a question: the bytes of a review, or its raw object."""


def object_as(type_: type[Other], source: Source) -> Other | None:
    """The object under review, decoded into another type; None if there is none.

    Raises:
        msgspec.ValidationError: A field has the wrong type.
        UnreadableError: The JSON is invalid in a part that was not read before.
    """
    wanted: Any = type_ | None
    envelope: Any = Envelope[wanted]
    try:
        if isinstance(source, msgspec.Raw):
            found: Other | None = read(source, wanted)
            return found
        request = read(source, envelope).request
        return request.object if request is not None else None
    except msgspec.ValidationError:
        raise
    except UNREADABLE as error:
        raise UnreadableError(str(error)) from error


def read(body: bytes | msgspec.Raw, type_: type[Other]) -> Other:
    """Decode a body. Null counts as a missing field if the type does not allow null, as in Go.

    Raises:
        ValueError: The body is not JSON, or a field has the wrong type.
        RecursionError: The body is nested too deeply.
    """
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        try:
            raw = msgspec.json.decode(body)
        except UNREADABLE:
            raise error from None  # which has the position
        return msgspec.convert(without_nulls(raw), type_)


def without_nulls(value: Any) -> Any:
    """A value without the fields that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def review_problem(review: Envelope[Any]) -> str | None:
    """Explain why a decoded body is not a complete review; None if it is one."""
    if review.kind != "AdmissionReview" or review.api_version != reviews.API_VERSION:
        found = f'"{review.kind}" of "{review.api_version}"'
        return f'expected kind "AdmissionReview" of "{reviews.API_VERSION}", found {found}'
    if review.request is None:
        return "the AdmissionReview has no request"
    return None


def bare(question: Question[Any]) -> Question[msgspec.Raw | None]:
    """A question whose objects are not decoded: None if they are missing or null."""
    new, old = (
        each if each and bytes(each) != b"null" else None
        for each in (question.object, question.old_object)
    )
    return msgspec.structs.replace(question, object=new, old_object=old)


class _RequestUid(msgspec.Struct, frozen=True):
    uid: str = ""


class _ReviewUid(msgspec.Struct, frozen=True):
    request: _RequestUid


def uid_of(body: bytes) -> str:
    """The uid of a body that is not a valid review, if it can be found.

    If the body is not valid JSON, the uid is still at the place where an API server writes it: first in the request.
    """
    try:
        return msgspec.json.decode(body, type=_ReviewUid).request.uid
    except UNREADABLE:
        found = _UID.search(body, 0, _NEAR)
        return found[1].decode() if found else ""
