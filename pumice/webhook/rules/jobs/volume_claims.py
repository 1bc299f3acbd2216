"""Volume claims of a Job: what the API server would refuse when the controller creates them.

The claim's spec stays raw JSON, so every access allows for any shape. Fields that Pumice does not know
pass through. The API server drops a `dataSourceRef` in another namespace, unless a feature is on, and a
`dataSource` of an unknown kind if there is no `dataSourceRef` beside it.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from pumice.api.meta import ApiStruct, LabelSelector
from pumice.api.names import dns_subdomain_problem
from pumice.api.quantities import parse_milli
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.differences import brief
from pumice.webhook.rules.labels import Problem, selector_problems
from pumice.webhook.rules.rule import stricter

VOL_CLAIM = stricter(
    "VOL-CLAIM",
    "a claim in a Job is valid: it has access modes and a size",
    "Volcano fails when it creates the claim; the Job then waits forever.",
    "volumes: [{mountPath: /data, volumeClaim: {accessModes: [ReadWriteOnce]}}]",
)

_CLAIM = "PersistentVolumeClaim"
_KNOWN = (("", _CLAIM), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_ALONE = "ReadWriteOncePod"
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", _ALONE)
_VOLUME_MODES = ("Filesystem", "Block")


class _DataSource(ApiStruct, frozen=True):
    """`TypedObjectReference`, and its older form, which has no namespace."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


_TYPES = {"selector": LabelSelector, "dataSource": _DataSource, "dataSourceRef": _DataSource}


def volume_claim(case: Case, claim: dict[str, Any], path: str) -> None:
    """Check the spec of a PersistentVolumeClaim."""
    _access_modes(case, claim.get("accessModes"), f"{path}.accessModes")
    _storage(case, claim.get("resources"), f"{path}.resources.requests.storage")
    for where, problem in chain(_name_problems(case, claim), _origin_problems(case, claim)):
        case.report(VOL_CLAIM, f"{path}.{where}", problem)


def _access_modes(case: Case, modes: object, path: str) -> None:
    if not isinstance(modes, list) or not modes:
        found = f'found "{modes}"' if isinstance(modes, str) else "found none"
        message = f"must be a list of at least one of {', '.join(_MODES)}, {found}"
        case.report(VOL_CLAIM, path, message, "FieldValueRequired")
        return
    for index, mode in enumerate(modes):
        if mode not in _MODES:
            case.report(VOL_CLAIM, f"{path}[{index}]", _unknown(case, mode, _MODES))
    others = [mode for mode in modes if mode != _ALONE]
    if _ALONE in modes and others:
        message = f"{_ALONE} must be the only access mode, also found: {others[0]}"
        case.report(VOL_CLAIM, path, message)


def _storage(case: Case, resources: object, path: str) -> None:
    requests = resources.get("requests") if isinstance(resources, dict) else None
    storage = requests.get("storage") if isinstance(requests, dict) else None
    if storage is None:
        message = "must be the size of the volume, such as 10Gi, found none"
        case.report(VOL_CLAIM, path, message, "FieldValueRequired")
        return
    try:
        problem = "" if parse_milli(storage) > 0 else f"must be more than 0, found {storage}"
    except ValueError as error:
        problem = str(error)
    if problem:
        case.report(VOL_CLAIM, path, problem)


def _name_problems(case: Case, claim: dict[str, Any]) -> Iterator[Problem]:
    for field in ("storageClassName", "volumeAttributesClassName", "volumeName"):
        name = claim.get(field)
        if name is not None and not isinstance(name, str):
            yield field, f"must be a string, found {brief(name)}"
        elif name and field != "volumeName" and (problem := dns_subdomain_problem(name)):
            yield field, problem
    mode = claim.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield "volumeMode", _unknown(case, mode, _VOLUME_MODES)


def _origin_problems(case: Case, claim: dict[str, Any]) -> Iterator[Problem]:
    """Problems of the selector and of the data source."""
    found: dict[str, Any] = {}
    for field, wanted in _TYPES.items():
        if (value := claim.get(field)) is not None:
            try:
                found[field] = msgspec.convert(value, wanted)
            except msgspec.ValidationError:
                yield field, f"cannot be read, found {brief(value)}"
    if selector := found.get("selector"):
        for where, problem in selector_problems(selector, case.suggestions):
            yield f"selector{where}", problem
    old, new = found.get("dataSource"), found.get("dataSourceRef")
    if new is not None and new.namespace:
        new = None
    if old is not None and new is None and (old.api_group or "", old.kind) not in _KNOWN:
        return
    for field, source in (("dataSource", old), ("dataSourceRef", new)):
        if source is not None:
            yield from _source_problems(source, field)
    if old is not None and new is not None:
        named = [(each.api_group, each.kind, each.name) for each in (old, new)]
        if named[0] != named[1]:
            yield "dataSource", "must be the same as dataSourceRef; leave it out"


def _source_problems(source: _DataSource, field: str) -> Iterator[Problem]:
    for member, value in (("name", source.name), ("kind", source.kind)):
        if not value:
            yield f"{field}.{member}", "must not be empty"
    if source.kind and not source.api_group and source.kind != _CLAIM:
        yield f"{field}.apiGroup", f"must be set for a {source.kind}, found none"
    if source.api_group and (problem := dns_subdomain_problem(source.api_group)):
        yield f"{field}.apiGroup", problem


def _unknown(case: Case, found: object, known: tuple[str, ...]) -> str:
    if not isinstance(found, str):
        return f"must be a string, found {brief(found)}"
    hint = case.did_you_mean(found, known) or f", expected one of {', '.join(known)}"
    return f'"{found}" is not known{hint}'
