"""The file of resource groups: everything that is wrong with it, or the groups."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pumice.api import keys
from pumice.api.documents import DocumentError
from pumice.api.fields import FieldError, did_you_mean
from pumice.api.names import dns_label_problem, dns_subdomain_problem, qualified_name_problem
from pumice.plugins import builtin
from pumice.webhook.groups.reading import Place, Problem, Reader, compose
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.labels import label_problems
from pumice.webhook.rules.resource_groups import ResourceGroup, ResourceGroups
from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.scheduling import SCHEDULING
from pumice.webhook.rules.templates.site import Site
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

__all__ = ["ConfError", "parse"]

_LIST = "resourceGroups"
_GROUP = ("resourceGroup", "object", "schedulerName", "tolerations", "labels", "affinity")
_OBJECT = ("key", "value")
_OBJECT_KEYS = ("namespace", "annotation")
_TOLERATION = ("key", "operator", "value", "effect")
_SECONDS = "tolerationSeconds"
_NO_CLAIM = "has no value, so no pod belongs to this group"


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
        if not namespaces:
            reader.warn(claim or place, _NO_CLAIM)
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
    elif not pairs:
        reader.warn(claim or place, _NO_CLAIM)
    return [], pairs


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
        mapping = _mapping_in(place.found)
    except DocumentError as error:
        reader.error(place, f"{message}: {error}")
        return []
    if mapping is None:
        reader.error(place, message)
        return []
    within = Reader()  # of lines that count from the beginning of the text
    pairs = [(key, within.text(member)) for key, member in within.members(mapping).items()]
    for problem in within.errors:
        reader.error(place, str(msgspec.structs.replace(problem, line=None)))
    for key, _ in pairs:
        _annotation_key(reader, place, key)
    return pairs


def _mapping_in(text: str) -> Place | None:
    """The mapping that a text holds as YAML, if it holds nothing else.

    Raises:
        DocumentError: The text cannot be read.
    """
    documents = compose(text.encode())
    return documents[0] if len(documents) == 1 and documents[0].is_mapping else None


def _annotation_key(reader: Reader, place: Place, key: str) -> None:
    # The API server compares the keys of annotations in lower case.
    if problem := qualified_name_problem(key.lower()):
        reader.error(place, f"invalid key of an annotation: {problem}")


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
    _judge(reader, path, given)
    return given


def _judge(reader: Reader, path: str, given: dict[str, Any]) -> None:
    """Judge fields of pods by the rules of pod templates: a group cannot give what a template could not hold."""
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    template = {"spec": given}
    if not types.fits(template):
        template, _ = types.read(Site(case, path), template)
    inside = f"{path}.spec"
    SCHEDULING(Site(case, inside), template.get("spec", {}), "", template)

    def in_file(found: list[FieldError]) -> list[Problem]:
        return [reader.at(path + each.path.removeprefix(inside), each.message) for each in found]

    reader.errors += in_file(case.errors)
    reader.warnings += in_file(case.warnings)


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
            mapping = _mapping_in(text)
        except DocumentError:
            mapping = None
        if mapping is None:
            reader.error(place, f"must be JSON text or a mapping: {error}")
            return None
    within = Reader()  # of lines that count from the beginning of the text
    found = within.value(mapping)
    for problem in within.errors:
        reader.error(place, problem.message)
    return found


def _overlaps(reader: Reader, places: list[Place], groups: list[ResourceGroup]) -> None:
    """Note what a later group claims although an earlier one has it."""
    seen: dict[str | tuple[str, str], int] = {}
    for index, (place, group) in enumerate(zip(places, groups, strict=True)):
        claims: list[str | tuple[str, str]] = [*group.namespaces, *group.annotations]
        for claim in dict.fromkeys(claims):
            first = seen.setdefault(claim, index)
            if first != index:
                is_name = isinstance(claim, str)
                what = f'namespace "{claim}"' if is_name else f'annotation "{": ".join(claim)}"'
                earlier = f'"{groups[first].name}" (resourceGroups[{first}])'
                message = f"claims {what}, which group {earlier} has already; that one counts"
                reader.warn(place, message)
