"""Where a claim gets its volume and its data from: `selector`, `dataSource` and `dataSourceRef`.

The API server drops a `dataSourceRef` in another namespace, unless a feature is on, and a `dataSource`
that it does not know where there is none beside it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.api.meta import ApiStruct, LabelSelector
from pumice.api.names import dns_subdomain_problem
from pumice.api.suggestions import Suggestions
from pumice.webhook.rules.differences import brief
from pumice.webhook.rules.labels import Problem, selector_problems

__all__ = ["origin_problems"]

_CLAIM = "PersistentVolumeClaim"
_KNOWN = (("", _CLAIM), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


class _Source(ApiStruct, frozen=True):
    """`TypedObjectReference`, and its older form, which has no namespace."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


def origin_problems(claim: dict[str, Any], suggestions: Suggestions) -> Iterator[Problem]:
    """Say what of a claim's origin the API server would refuse.

    Args:
        claim: The spec of a PersistentVolumeClaim.
        suggestions: Finds what was meant.

    Yields:
        Where in the spec, and what.
    """
    found: dict[str, Any] = {}
    fields = {"selector": LabelSelector, "dataSource": _Source, "dataSourceRef": _Source}
    for field, wanted in fields.items():
        if (value := claim.get(field)) is not None:
            try:
                found[field] = msgspec.convert(value, wanted)
            except msgspec.ValidationError:
                yield field, f"cannot be read, found {brief(value)}"
    if selector := found.get("selector"):
        for where, problem in selector_problems(selector, suggestions):
            yield f"selector{where}", problem
    old, new = found.get("dataSource"), found.get("dataSourceRef")
    if new is not None and new.namespace:
        new = None
    if old is not None and new is None and (old.api_group or "", old.kind) not in _KNOWN:
        old = None
    for field, source in (("dataSource", old), ("dataSourceRef", new)):
        if source is not None:
            yield from _source_problems(source, field)
    if old is not None and new is not None:
        named = [(each.api_group, each.kind, each.name) for each in (old, new)]
        if named[0] != named[1]:
            yield "dataSource", "must be the same as dataSourceRef; leave it out"


def _source_problems(source: _Source, field: str) -> Iterator[Problem]:
    if not source.name:
        yield f"{field}.name", "must not be empty"
    if not source.kind:
        yield f"{field}.kind", "must not be empty"
    elif not source.api_group and source.kind != _CLAIM:
        yield f"{field}.apiGroup", f"must be set for a {source.kind}, found none"
    if source.api_group and (problem := dns_subdomain_problem(source.api_group)):
        yield f"{field}.apiGroup", problem
