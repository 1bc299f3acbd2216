"""Media types: formats of bodies and of responses."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import yaml

from pumice.embedded import protobuf, statuses

JSON = "application/json"
MERGE_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
PROTOBUF = "application/vnd.kubernetes.protobuf"
_YAML_TYPES = ("application/yaml", "application/apply-patch+yaml")

FormName = Literal[
    "object", "Table", "PartialObjectMetadata", "PartialObjectMetadataList", "discovery"
]


@dataclass(frozen=True, slots=True)
class MediaForm:
    """A form of answer.

    Attributes:
        name: `object` for the resource itself.
        api_version: Version of the form, for example `meta.k8s.io/v1`.
    """

    name: FormName = "object"
    api_version: str = ""


_FORMS: dict[str, FormName] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadataList",
    "APIGroupDiscoveryList": "discovery",
}
OBJECT = MediaForm()
"""The resource itself, as JSON."""


def wanted_form(accept: str) -> MediaForm:
    """The first form in an Accept header that can be given.

    Raises:
        ApiStatusError: 406 when none can.
    """
    if not accept or accept == JSON:
        return OBJECT
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        if media not in {JSON, "application/*", "*/*"}:
            continue
        named = dict(each.partition("=")[::2] for each in parameters)
        if "as" not in named:
            return OBJECT
        form = _FORMS.get(named["as"])
        if form == "discovery" and named.get("v") not in {"v2", "v2beta1"}:
            continue
        if form is not None:
            return MediaForm(form, f"{named.get('g', 'meta.k8s.io')}/{named.get('v', 'v1')}")
    raise statuses.ApiStatusError(
        406,
        "NotAcceptable",
        f"406: Not Acceptable\n\nAvailable representations: {JSON}",
        {},
    )


def decode(body: bytes, content_type: str) -> Any:
    """Read a body.

    Raises:
        ApiStatusError: 400 when it cannot be read, 415 when its type is not known.
    """
    media = content_type.partition(";")[0].strip()
    if media in _YAML_TYPES and not body.lstrip().startswith((b"{", b"[")):
        try:
            return yaml.load(body, Loader=_LOADER)
        except yaml.YAMLError as error:
            raise statuses.bad_request(f"error decoding YAML: {error}") from error
    if media == PROTOBUF:
        return protobuf.decode(body)
    if media and not (media == JSON or media in MERGE_TYPES or media in _YAML_TYPES):
        raise statuses.unsupported_media_type((JSON, "application/yaml", PROTOBUF))
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type JSON): {error}"
        ) from error


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
