"""Errors in the form of Kubernetes' Statuses.

Clients branch on `reason` and `code`, kubectl prints `message`, and tools read `details.causes`;
all three come from the constructors below and from nowhere else.
"""

from collections.abc import Sequence
from typing import Any

from pumice.api import kinds
from pumice.api.fields import FieldError
from pumice.api.kinds import Kind
from pumice.api.meta import Raw


class ApiStatusError(Exception):
    """A request that fails with a `metav1.Status`.

    Attributes:
        code: HTTP status code.
        reason: Kubernetes' one-word reason; may be empty.
        message: What kubectl prints.
        details: `status.details`, if any.
        warnings: Warnings for the client; filled in by the handler.
    """

    def __init__(self, code: int, reason: str, message: str, details: Raw | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.warnings: list[str] = []

    def body(self) -> Raw:
        """The Status object."""
        status: Raw = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(kind: Kind, name: str, **more: Any) -> Raw:
    details: Raw = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details | more


def success(kind: Kind, name: str, uid: str) -> Raw:
    """The Status that answers a deletion which is complete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(kind, name, uid=uid),
    }


def not_found(kind: Kind, name: str) -> ApiStatusError:
    """404: no object of that name."""
    return ApiStatusError(
        404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name)
    )


def not_scalable(kind: Kind, name: str) -> ApiStatusError:
    """404: a kind without the subresource `scale`, of which a Volcano Job is the one that people try to scale."""
    message = f"{kind.resource} cannot be scaled: the kind has no single number of replicas"
    if kind == kinds.JOB:
        patch = '[{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}]'
        message += f"; change that of a task: kubectl patch vcjob {name} --type=json -p '{patch}'"
    return ApiStatusError(404, "NotFound", message, _details(kind, name))


def already_exists(kind: Kind, name: str) -> ApiStatusError:
    """409: a creation met an object of that name."""
    message = f'{kind.resource} "{name}" already exists'
    return ApiStatusError(409, "AlreadyExists", message, _details(kind, name))


_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(
    kind: Kind, name: str, why: str = _MODIFIED, *, subresource: str = ""
) -> ApiStatusError:
    """409: the object is not in the expected state."""
    resource = f"{kind.resource}/{subresource}" if subresource else kind.resource
    details = _details(kind, name)
    if subresource:
        details["kind"] = f"{kind.plural}/{subresource}"
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return ApiStatusError(409, "Conflict", message, details)


def precondition_failed(kind: Kind, name: str, why: str) -> ApiStatusError:
    """409: a deletion met another object than the one it means; names the kind, not the plural."""
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiStatusError(409, "Conflict", message, _details(kind, name) | {"kind": kind.kind})


def apply_conflict(causes: Sequence[tuple[str, str]]) -> ApiStatusError:
    """409: server-side apply would take fields over from other managers.

    Args:
        causes: Pairs of the other manager, as it is to be named, and the path of a field, ordered.
    """
    managers: dict[str, list[str]] = {}
    for manager, path in causes:
        managers.setdefault(manager, []).append(path)
    if len(causes) == 1:
        text = f"conflict with {causes[0][0]}: {causes[0][1]}"
        message = f"Apply failed with 1 conflict: {text}"
    else:
        lines = [
            f"conflicts with {manager}:\n" + "\n".join(f"- {path}" for path in paths)
            for manager, paths in managers.items()
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    details = {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager}",
                "field": path,
            }
            for manager, path in causes
        ]
    }
    return ApiStatusError(409, "Conflict", message, details)


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiStatusError:
    """422: the object breaks rules; every one of them is a cause."""
    texts = [f"{error.path}: {error.message}" for error in errors]
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details: Raw = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind
    details["causes"] = [
        {"reason": error.reason, "message": error.message, "field": error.path} for error in errors
    ]
    return ApiStatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {summary}', details)


def bad_request(message: str) -> ApiStatusError:
    """400: the request is invalid."""
    return ApiStatusError(400, "BadRequest", message)


def invalid_options(options: str, error: FieldError) -> ApiStatusError:
    """422: a value of `DeleteOptions` or its like that does not exist or is missing."""
    return invalid(Kind("meta.k8s.io", "v1", options, options.lower()), "", [error])


def forbidden(kind: Kind, name: str, why: str, **details: Any) -> ApiStatusError:
    """403: an object that may not be created or changed now."""
    message = f'{kind.resource} "{name}" is forbidden: {why}'
    return ApiStatusError(403, "Forbidden", message, _details(kind, name, **details))


def expired(message: str) -> ApiStatusError:
    """410 Gone: the requested resourceVersion is too old."""
    return ApiStatusError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> ApiStatusError:
    """410: a watch or a list from a version that has been forgotten."""
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large_version(asked: int, current: int) -> ApiStatusError:
    """504: a list that asks for a version which does not exist yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiStatusError(504, "Timeout", message, details)


def method_not_allowed() -> ApiStatusError:
    """405: the resource exists and cannot do that."""
    message = "the server does not allow this method on the requested resource"
    return ApiStatusError(405, "MethodNotAllowed", message, {})


def json_only(kind: str) -> ApiStatusError:
    """415: the kind is read as JSON or YAML, and Protocol Buffers were sent."""
    message = (
        f"this server reads a {kind} as JSON or YAML, and kubectl sends Protocol Buffers; "
        "add --dry-run=client -o yaml to the command, and pipe its output into kubectl apply -f -"
    )
    return ApiStatusError(415, "UnsupportedMediaType", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiStatusError:
    """415: a body in a form that is not read here."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiStatusError(415, "UnsupportedMediaType", message)


def no_such_resource() -> ApiStatusError:
    """404: a path below a group version that exists."""
    message = "the server could not find the requested resource"
    return ApiStatusError(404, "NotFound", message, {})


def body_too_large(limit: int) -> ApiStatusError:
    """413: a body of more bytes than are read."""
    message = f"Request entity too large: limit is {limit}"
    return ApiStatusError(413, "RequestEntityTooLarge", message, {})


def internal(message: str) -> ApiStatusError:
    """500: a fault on this side, or of a webhook."""
    details = {"causes": [{"message": message}]}
    return ApiStatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def version_missing(kind: Kind, name: str) -> ApiStatusError:
    """422: an update without `resourceVersion`, of a kind that insists on it."""
    message = "Invalid value: 0: must be specified for an update"
    field = "metadata.resourceVersion"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field}]
    text = f'{kind.resource} "{name}" is invalid: {field}: {message}'
    return ApiStatusError(422, "Invalid", text, _details(kind, name, causes=causes))
