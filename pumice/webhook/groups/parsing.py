"""The file of resource groups: everything that is wrong with it, or the groups."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.documents import DocumentError
from pumice.api.fields import did_you_mean
from pumice.api.names import dns_label_problem, dns_subdomain_problem, qualified_name_problem
from pumice.webhook.groups.checks import judged
from pumice.webhook.groups.model import ResourceGroup, ResourceGroups
from pumice.webhook.groups.reading import Place, Problem, Reader, compose
from pumice.webhook.rules.labels import label_problems

__all__ = ["ConfError", "parse"]

_LIST = "resourceGroups"
_GROUP = ("resourceGroup", "object", "schedulerName", "tolerations", "labels", "affinity")
_OBJECT = ("key", "value")
_OBJECT_KEYS = ("namespace", "annotation")
_TOLERATION = ("key", "operator", "value", "effect")
_SECONDS = "tolerationSeconds"


class ConfError(ValueError):
    """A file that cannot be used.

    Attributes:
        problems: Everything that is wrong with it, in the order of the file.
        warnings: What has no effect, as far as it was read.
    """

    def __init__(self, problems: Iterable[Problem], warnings: Iterable[Problem] = ()) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        super().__init__("\n".join(map(str, self.problems)))


def parse(raw: bytes) -> tuple[ResourceGroups, tuple[Problem, ...]]:
    """Read the file that `--admission-conf` names.

    An empty file, or one that is all comments as Volcano ships it, holds no groups.

    Args:
        raw: What it holds, as YAML or JSON.

    Returns:
        The groups, and what has no effect.

    Raises:
        ConfError: It cannot be used; what is wrong is told all at once.
    """
    reader = Reader()
    try:
        documents = compose(raw)
    except DocumentError as error:
        raise ConfError([Problem("", error.line, str(error))]) from None
    if len(documents) > 1:
        reader.error(documents[1], "must be one document, here begins another")
    groups: list[ResourceGroup] = []
    places: list[Place] = []
    for document in documents[:1]:
        members = reader.mapping(document, (_LIST,))
        if document.is_mapping and _LIST not in reader.members(document):
            reader.error(document, f"must hold a list {_LIST}")
        elif _LIST in members:
            places = reader.items(members[_LIST])
            groups = [_group(reader, place) for place in places]
    if reader.errors:
        told = dict.fromkeys(reader.errors)  # what is read more than once is told once
        raise ConfError(sorted(told, key=lambda each: each.line or 0), reader.warnings)
    _overlaps(reader, places, groups)
    return ResourceGroups(groups), tuple(reader.warnings)


def _group(reader: Reader, place: Place) -> ResourceGroup:
    if not place.is_mapping:
        reader.error(place, "must be a mapping with a name (resourceGroup)")
        return ResourceGroup()
    members = reader.mapping(place, _GROUP)
    name = reader.text(members["resourceGroup"]) if "resourceGroup" in members else ""
    namespaces, annotations = _claims(reader, place, members.get("object"), name)
    scheduler = ""
    if "schedulerName" in members:
        scheduler = reader.text(members["schedulerName"])
        if scheduler and (problem := dns_subdomain_problem(scheduler)):
            reader.error(members["schedulerName"], problem)
    given = _given(reader, members, place.path)
    return ResourceGroup(
        name=name,
        namespaces=tuple(namespaces),
        annotations=tuple(annotations),
        labels=_labels(reader, members["labels"]) if "labels" in members else {},
        affinity=given.get("affinity"),
        tolerations=tuple(given.get("tolerations", ())),
        scheduler_name=scheduler,
    )


def _claims(
    reader: Reader, place: Place, claim: Place | None, name: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Namespaces and annotations of the pods that belong to a group."""
    members = reader.mapping(claim, _OBJECT) if claim is not None else {}
    kind = reader.text(members["key"]) if "key" in members else ""
    values = reader.items(members["value"]) if "value" in members else []
    if kind == "namespace":
        namespaces = [_namespace(reader, value) for value in values]
        _claims_something(reader, claim or place, namespaces)
        return namespaces, []
    if kind not in ("", *_OBJECT_KEYS):
        known = ", ".join(_OBJECT_KEYS)
        message = f'must be one of {known}, or left out, found "{kind}"'
        reader.error(members["key"], message + did_you_mean(kind, _OBJECT_KEYS))
        return [], []
    pairs = [pair for value in values for pair in _pairs(reader, value)]
    if not kind and name:
        pairs.append((keys.RESOURCE_GROUP, name))
    if not kind and not pairs:
        reader.error(
            place, "needs a name (resourceGroup), or an object that says which pods are its"
        )
    elif kind:
        _claims_something(reader, claim or place, pairs)
    return [], pairs


def _claims_something(reader: Reader, place: Place, claims: list[Any]) -> None:
    if not claims:
        reader.warn(place, "has no value, so no pod belongs to this group")


def _namespace(reader: Reader, place: Place) -> str:
    name = reader.text(place)
    if problem := dns_label_problem(name):
        reader.error(place, problem)
    return name


def _pairs(reader: Reader, place: Place) -> list[tuple[str, str]]:
    """Annotations of one item: a text that is a mapping, as in Volcano, or a mapping."""
    if not place.is_text:
        found = []
        for key, member in reader.members(place).items():
            _annotation_key(reader, member, key)
            found.append((key, reader.text(member)))
        return found
    message = f'must be an annotation such as "key: value", found "{place.found}"'
    try:
        documents = compose(place.found.encode())
    except DocumentError as error:
        reader.error(place, f"{message}: {error}")
        return []
    if len(documents) != 1 or not documents[0].is_mapping:
        reader.error(place, message)
        return []
    within = Reader()  # of lines that count from the beginning of the text
    pairs = [(key, within.text(member)) for key, member in within.members(documents[0]).items()]
    for problem in within.errors:
        reader.error(place, str(msgspec.structs.replace(problem, line=None)))
    for key, _ in pairs:
        _annotation_key(reader, place, key)
    return pairs


def _annotation_key(reader: Reader, place: Place, key: str) -> None:
    # The API server compares the keys of annotations in lower case.
    if problem := qualified_name_problem(key.lower()):
        reader.error(place, f"the key of an annotation {problem}")


def _labels(reader: Reader, place: Place) -> dict[str, str]:
    labels = {key: reader.text(member) for key, member in reader.members(place).items()}
    for where, problem in label_problems(labels):
        reader.errors.append(reader.at(f"{place.path}{where}", problem))
    return labels


def _given(reader: Reader, members: dict[str, Place], path: str) -> dict[str, Any]:
    """Affinity and tolerations of a group, as a pod has them."""
    given: dict[str, Any] = {}
    if "tolerations" in members:
        found = [_toleration(reader, each) for each in reader.items(members["tolerations"])]
        given["tolerations"] = [each for i, each in enumerate(found) if each not in found[:i]]
    if "affinity" in members and (affinity := _affinity(reader, members["affinity"])):
        given["affinity"] = affinity
    errors, warnings = judged(path, given)
    reader.errors += [reader.at(each.path, each.message) for each in errors]
    reader.warnings += [reader.at(each.path, each.message) for each in warnings]
    return given


def _toleration(reader: Reader, place: Place) -> dict[str, Any]:
    """A toleration, its keys in lower case as Volcano reads them or in Kubernetes' spelling."""
    found: dict[str, Any] = {}
    for key, member in reader.mapping(place, (*_TOLERATION, _SECONDS, _SECONDS.lower())).items():
        if key in _TOLERATION:
            value: str | int | None = reader.text(member) or None
        else:
            key, value = _SECONDS, reader.number(member)
        if value is not None:
            found[key] = value
    return found


def _affinity(reader: Reader, place: Place) -> dict[str, Any]:
    """The affinity of a group, YAML, or a text that is JSON as in Volcano or YAML; empty when there is none."""
    found = reader.value(place)
    if isinstance(found, str):
        found = _written(reader, place, found)
    if isinstance(found, dict):
        return found
    if found is not None:
        reader.error(place, "must be an affinity: nodeAffinity, podAffinity, podAntiAffinity")
    return {}


def _written(reader: Reader, place: Place, text: str) -> Any:
    """What a text says; None for nothing, and for what cannot be read."""
    try:
        return msgspec.json.decode(text) if text.strip() else None
    except (ValueError, RecursionError) as error:
        try:
            documents = compose(text.encode())
        except DocumentError:
            documents = []
        if len(documents) != 1 or not documents[0].is_mapping:
            reader.error(place, f"must be JSON text or a mapping: {error}")
            return None
    within = Reader()  # of lines that count from the beginning of the text
    found = within.value(documents[0])
    for problem in within.errors:
        reader.error(place, problem.message)
    return found


def _overlaps(reader: Reader, places: list[Place], groups: list[ResourceGroup]) -> None:
    """Note what a later group claims in vain."""
    seen: dict[str | tuple[str, str], int] = {}
    for index, (place, group) in enumerate(zip(places, groups, strict=True)):
        claims: list[str | tuple[str, str]] = [*group.namespaces, *group.annotations]
        for claim in dict.fromkeys(claims):
            first = seen.setdefault(claim, index)
            if first != index:
                what = f'namespace "{claim}"' if isinstance(claim, str) else _annotation(*claim)
                earlier = f'"{groups[first].name}" (resourceGroups[{first}])'
                message = f"claims {what}, which group {earlier} has already; that one counts"
                reader.warn(place, message)


def _annotation(key: str, value: str) -> str:
    return f'annotation "{key}: {value}"'
