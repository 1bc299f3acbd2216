"""Admission reviews: the responses to requests of the API server.

Kind `AdmissionReview`, `admission.k8s.io/v1`.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from pumice.api.fields import FieldError, plain
from pumice.api.meta import ApiStruct

API_VERSION = "admission.k8s.io/v1"

WARNING_CHARACTERS = 256
"""Maximum length of one warning: if the warnings are too long in all, kube-apiserver cuts each of them there."""

ALL_WARNING_CHARACTERS = 4096 - 2 * WARNING_CHARACTERS
"""Maximum length of all warnings of a response. kube-apiserver passes on 4096 characters of all webhooks together and
drops the rest silently; the difference is left to other webhooks.
"""

MOST_CAUSES = 1000
"""Maximum number of causes of a denial; checks stop there. kubectl prints a line for each cause."""

_PROBLEMS_SHOWN = 20
"""Number of problems in the message of a denial; its causes have the others."""

_PROBLEM_CHARACTERS = 2000
"""Maximum length of one problem, and of the name of its field: a wrong value may have megabytes."""

_ALL_CHARACTERS = 256 * 1024
"""Maximum length of all causes of a denial."""

_WHOLE_OBJECT = "metadata.name"
"""Field name of a cause that concerns the object as a whole; kubectl would print an empty one, too."""


class GroupVersionResource(ApiStruct, frozen=True):
    """The resource under review."""

    group: str = ""
    version: str = ""
    resource: str = ""


class PatchOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation of a JSON patch (RFC 6902)."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: Any = msgspec.UNSET


class Status(ApiStruct, frozen=True):
    """The fields of `metav1.Status` that a denial has."""

    code: int = 0
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None


class Response(ApiStruct, frozen=True):
    """The response; `encode` adds the uid of the review."""

    uid: str = ""
    allowed: bool = msgspec.field(default=False)
    status: Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None
    audit_annotations: dict[str, str] | None = None


def allowed(warnings: Sequence[str] = (), audit: Mapping[str, str] | None = None) -> Response:
    """Allow the request unchanged."""
    return Response(
        allowed=True, warnings=list(warnings) or None, audit_annotations=dict(audit or {}) or None
    )


def patched(
    operations: Sequence[PatchOperation],
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
) -> Response:
    """Allow the request with changes; without changes the response has no patch."""
    if not operations:
        return allowed(warnings, audit)
    text = base64.b64encode(msgspec.json.encode(list(operations))).decode()
    return Response(
        allowed=True,
        patch=text,
        patch_type="JSONPatch",
        warnings=list(warnings) or None,
        audit_annotations=dict(audit or {}) or None,
    )


def denied(
    errors: Sequence[FieldError],
    warnings: Sequence[str] = (),
    audit: Mapping[str, str] | None = None,
    *,
    name: str = "",
    kind: str = "",
    group: str = "",
) -> Response:
    """Deny the request with every reason that a response can hold: HTTP 422 with one cause for each error, and their codes for the audit log.

    kubectl prints the causes when it is about one object, and the message when it is about several.
    """
    name = name[:_PROBLEM_CHARACTERS]
    causes = _causes(errors)
    details: dict[str, Any] = {"name": name, "kind": kind, "group": group, "causes": causes}
    codes = ",".join(dict.fromkeys(error.code for error in errors))
    return Response(
        allowed=False,
        status=Status(
            code=422,
            status="Failure",
            reason="Invalid",
            message=_message(errors, f'{kind} "{name}"' if kind and name else kind),
            details={key: value for key, value in details.items() if value},
        ),
        warnings=list(warnings) or None,
        audit_annotations={"rules": codes, **(audit or {})} if codes else None,
    )


def _causes(errors: Sequence[FieldError]) -> list[dict[str, str]]:
    """One cause for each error, and a last one with the number of those that were left out."""
    causes: list[dict[str, str]] = []
    left = _ALL_CHARACTERS
    for error in errors[:MOST_CAUSES]:
        bare = FieldError("", error.message, error.code)
        message = bare.within(_PROBLEM_CHARACTERS)
        field = plain(error.path[:_PROBLEM_CHARACTERS]) or _WHOLE_OBJECT
        left -= len(message) + len(field)
        if left < 0:
            break
        causes.append({"reason": error.reason, "message": message, "field": field})
    if more := len(errors) - len(causes):
        message = f"and {_at_least(more, errors)} more problems, which `pumice lint` shows"
        causes.append({"reason": "FieldValueInvalid", "message": message, "field": _WHOLE_OBJECT})
    return causes


def _at_least(count: int, errors: Sequence[FieldError]) -> str:
    return f"{count}" if len(errors) < MOST_CAUSES else f"at least {count}"


def _message(errors: Sequence[FieldError], subject: str) -> str:
    """The message of a denial: the object, and one line for each problem."""
    if len(errors) == 1:
        text = errors[0].within(_PROBLEM_CHARACTERS)
        return f"{subject}: {text}" if subject else text
    text = f"{subject} has " if subject else ""
    text += f"{_at_least(len(errors), errors)} problems:\n"
    text += "\n".join(each.within(_PROBLEM_CHARACTERS) for each in errors[:_PROBLEMS_SHOWN])
    if (more := len(errors) - _PROBLEMS_SHOWN) > 0:
        text += f"\n… and {_at_least(more, errors)} more, which `pumice lint` shows"
    return text


def fitting(warnings: Sequence[FieldError]) -> list[str]:
    """Warnings that fit into the response: kube-apiserver cuts longer ones.

    Duplicates are removed. If the warnings are too long in all, each is cut before its code; the number of those that
    still do not fit is reported.
    """
    texts = list(dict.fromkeys(map(str, warnings)))
    if sum(map(len, texts)) <= ALL_WARNING_CHARACTERS:
        return texts
    texts = list(dict.fromkeys(each.within(WARNING_CHARACTERS) for each in warnings))
    left = ALL_WARNING_CHARACTERS - WARNING_CHARACTERS
    for count, text in enumerate(texts):
        left -= len(text)
        if left < 0:
            more = len(texts) - count
            return [*texts[:count], f"and {more} more warnings, which `pumice lint` shows"]
    return texts


def errored(code: int, message: str, *, reason: str = "BadRequest") -> Response:
    """Answer with an error, because the request cannot be decided."""
    return Response(
        allowed=False, status=Status(code=code, status="Failure", reason=reason, message=message)
    )


_ENCODER = msgspec.json.Encoder()


def encode(uid: str, response: Response) -> bytes:
    """The envelope of a response; only this function copies the uid."""
    told: dict[str, Any] = {"uid": uid, "allowed": response.allowed}
    if response.status is not None:
        told["status"] = response.status
    if response.patch is not None:
        told["patch"], told["patchType"] = response.patch, response.patch_type
    if response.warnings is not None:
        told["warnings"] = response.warnings
    if response.audit_annotations is not None:
        told["auditAnnotations"] = response.audit_annotations
    answer = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": told}
    return _ENCODER.encode(answer)
