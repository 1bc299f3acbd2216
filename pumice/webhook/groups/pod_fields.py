"""Fields of a resource group that its pods get: read as YAML, and checked by the rules of pod templates.

So a group has only values that are valid in a template.
"""

import re
from typing import Any

import msgspec

from pumice.api.documents import DocumentError, written
from pumice.api.scalars import ScalarError
from pumice.api.yaml_values import value_of
from pumice.plugins import builtin
from pumice.settings import refuse
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.scheduling import SCHEDULING
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.rules.terms import Terms
from pumice.webhook.view import Snapshot

__all__ = ["as_affinity", "as_json", "judged", "mapping_in", "refuse_unfit"]

Found = list[tuple[tuple[str | int, ...], str]]
"""Path and problem."""


def as_json(found: Any) -> Any:
    """A validator that converts a value to JSON values."""
    try:
        return value_of(found)
    except ScalarError as error:
        refuse([((), str(error))])
    except RecursionError:
        refuse([((), "is nested too deeply")])


def as_affinity(found: Any) -> Any:
    """A validator that accepts an object, or a string with JSON (as in Volcano) or YAML; None if it is empty."""
    read = as_json(found)
    if isinstance(read, str):
        read = _written(read)
    if read is not None and not isinstance(read, dict):
        refuse([((), "must be an affinity: nodeAffinity, podAffinity, podAntiAffinity")])
    return read or None


def _written(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        try:
            mapping = mapping_in(text)
        except DocumentError:
            mapping = None
        refuse([((), f"must be JSON text or an object: {error}")] if mapping is None else [])
        return as_json(mapping)


def mapping_in(text: str) -> Any:
    """The mapping in a YAML text; None if the text has another value.

    Raises:
        DocumentError: The text cannot be read.
    """
    documents = written(text.encode())
    return documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None


def refuse_unfit(field: str, given: Any) -> None:
    """Refuse a field that would be invalid in a pod template."""
    errors, _ = judged({field: given})
    refuse((location[1:], message) for location, message in errors)


def judged(given: dict[str, Any]) -> tuple[Found, Found]:
    """Errors and warnings of the rules of pod templates about fields of a pod's spec."""
    case = Case(Terms(), Snapshot(), builtin())
    template = {"spec": given}
    if not types.fits(template):
        template, _ = types.read(Site(case, ""), template)
    SCHEDULING(Site(case, ".spec"), template.get("spec", {}), "", template)
    errors, warnings = (
        [(_location(each.path.removeprefix(".spec")), each.message) for each in found]
        for found in (case.errors, case.warnings)
    )
    return errors, warnings


def _location(path: str) -> tuple[str | int, ...]:
    steps = re.findall(r"[^.\[\]]+", path)
    return tuple(int(each) if each.isdecimal() else each for each in steps)
