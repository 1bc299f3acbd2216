"""A request for objects as HTTP gives it, with what its query parameters mean, and the response."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from multidict import MultiMapping

from pumice.api.fields import FieldError
from pumice.embedded import media, selectors, statuses
from pumice.embedded.pod_streams import ContainerCommandRequest, ContainerLogRequest
from pumice.embedded.resources import Call, FieldValidation, Target
from pumice.embedded.storage import encode
from pumice.embedded.watching import WatchRequest

_OPTIONS = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": "DeleteOptions",
}
_VALIDATIONS: Mapping[str, FieldValidation] = {
    "": "Warn",
    "Ignore": "Ignore",
    "Warn": "Warn",
    "Strict": "Strict",
}


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request.

    Attributes:
        method: HTTP method.
        target: What the path addresses.
        query: Query parameters.
        headers: Headers; looked up without regard to case.
        body: Body.
    """

    method: str
    target: Target
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def form(self) -> media.MediaForm:
        """The form of answer that is wanted."""
        return media.wanted_form(self.headers.get("Accept", ""))

    def decoded(self) -> Any:
        """The body's content."""
        return media.decode(self.body, self.headers.get("Content-Type", ""))

    def values(self, name: str) -> tuple[str, ...]:
        """All values of a query parameter that may be repeated."""
        found = self.query.getall(name, ()) if isinstance(self.query, MultiMapping) else ()
        return tuple(found)

    def flag(self, name: str) -> bool:
        """A boolean query parameter."""
        return self.query.get(name, "").lower() in {"true", "1"}

    @property
    def namespace(self) -> str | None:
        """The namespace that the path names; None for all of them."""
        return self.target.namespace or None

    def number(self, name: str) -> int:
        """A query parameter that is a number; 0 if it is missing."""
        text = self.query.get(name, "")
        try:
            return msgspec.convert(text or 0, int, strict=False)
        except msgspec.ValidationError as error:
            raise statuses.bad_request(f"invalid {name}: {text!r}") from error

    def selector(self, fields: str | None = None) -> selectors.Selector:
        """The test of labels and fields; other fields than those of the query may be given."""
        return selectors.selector(
            self.query.get("labelSelector", ""),
            self.query.get("fieldSelector", "") if fields is None else fields,
            self.target.resource.fields,
        )

    def dry_run(self, stages: Any) -> bool:
        """Whether nothing may be written: a list of stages, of which there is only `All`."""
        if not stages:
            return False
        if stages != ["All"]:
            shown = encode(stages).decode()
            message = f'Unsupported value: {shown}: supported values: "All"'
            error = FieldError("dryRun", message, "API-ENUM", "FieldValueNotSupported")
            raise statuses.invalid_options(_OPTIONS.get(self.method, ""), error)
        return True

    def call(self) -> Call:
        """The change that is wanted."""
        target, query = self.target, self.query
        validation = _VALIDATIONS.get(query.get("fieldValidation", ""))
        if validation is None:
            raise statuses.bad_request(f"invalid fieldValidation: {query['fieldValidation']!r}")
        agent = self.headers.get("User-Agent", "").partition("/")[0]
        return Call(
            target.resource,
            target.namespace,
            target.name,
            target.subresource,
            dry_run=self.dry_run([query["dryRun"]] if query.get("dryRun") else None),
            manager=query.get("fieldManager") or agent or "unknown",
            force=self.flag("force"),
            validation=validation,
        )


@dataclass(slots=True)
class HttpResponse:
    """One HTTP response.

    Attributes:
        body: JSON, or text of the given type.
        code: HTTP status code.
        warnings: Texts for `Warning` headers.
        watch: A watch to be streamed instead of the body.
        stream: What is to be streamed of a container instead.
        media_type: Type of the body.
    """

    body: bytes = b""
    code: int = 200
    warnings: list[str] = field(default_factory=list)
    watch: WatchRequest | None = None
    stream: ContainerLogRequest | ContainerCommandRequest | None = None
    media_type: str = "application/json"
