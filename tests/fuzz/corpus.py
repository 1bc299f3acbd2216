"""Real reviews to start from: every row of the tables, and every manifest in the wild's shapes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pumice.api.documents import parse
from pumice.api.kinds import of_object
from pumice.plugins import builtin
from pumice.webhook.admission import Admission, RuleFailure
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.resource_group_file import parse as parse_groups
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import tables
from tests.unit.webhook.reviewing import Raw, Row, request, rows

WILD = tables.CASES / "wild"
NO_GROUPS = b"null\n"


@dataclass(frozen=True)
class Real:
    """A real review, and the admission that answers it.

    Attributes:
        name: Where it comes from.
        path: Endpoint.
        body: The review.
        admission: Judges it in its own cluster.
        crashes: Rules that have raised in it.
    """

    name: str
    path: str
    body: bytes
    admission: Admission
    crashes: list[RuleFailure]


@cache
def corpus() -> tuple[Real, ...]:
    """All of them, in a fixed order."""
    admissions: dict[tuple[object, ...], tuple[Admission, list[RuleFailure]]] = {}
    found = []
    for row in (*rows(), *_wild()):
        key = row.assignments, repr(row.state), row.conf
        if key not in admissions:
            crashes: list[RuleFailure] = []
            groups, _ = parse_groups(row.conf)
            view = Snapshot.of(row.state)
            admission = Admission(
                row.settings, view, builtin(), groups=groups, on_crash=crashes.append
            )
            admissions[key] = admission, crashes
        found.append(Real(row.name, row.path, row.body, *admissions[key]))
    return tuple(found)


def everything() -> list[Raw]:
    """One cluster with every object that any of their clusters has; of two of one name the first."""
    found: dict[tuple[Any, ...], Raw] = {}
    for row in (*rows(), *_wild()):
        for obj in row.state:
            meta = obj["metadata"]
            key = obj["apiVersion"], obj["kind"], meta.get("namespace"), meta["name"]
            found.setdefault(key, obj)
    return list(found.values())


def _wild() -> Iterator[Row]:
    state = _objects("state.yaml")
    for file in sorted(WILD.glob("*/*.yaml")):
        for manifest in _objects(str(file.relative_to(WILD))):
            kind = of_object(manifest)
            for registration in REGISTRATIONS:
                if registration.kind == kind:
                    path = registration.path
                    asked = request(path, manifest)
                    if kind.namespaced:
                        asked["namespace"] = asked["namespace"] or "default"
                    name = f"{file.name} {path}"
                    settings = AdmissionSettings()
                    yield Row(name, path, (), settings, state, NO_GROUPS, asked, {})


def _objects(file: str) -> list[Raw]:
    """The objects of a file, Lists taken apart."""
    documents = [value for _, _, value in parse((WILD / file).read_bytes())]
    return [each for value in documents for each in value.get("items", [value])]
