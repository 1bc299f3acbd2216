"""Tables of checks: the fields of an object that are checked, and their checks; and the position at which a check reports.

Checks see templates as raw JSON in which every known field has the right type and none is null: `types` has reported the
others and removed them.

A row names a field by its path (`tolerations[].effect`; `a|b` stands for both fields) and a check. Nearly all checks
have one of the shapes in `shapes`; others are functions beside their table. A table is compiled to nested functions
when its module is imported. Problems are reported in the order of the table. The exception is fields of pods and
containers: of their many fields only the present ones are checked, in the order of the manifest.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from pumice.api.fields import Reason
from pumice.api.meta import Raw
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

HostPort = tuple[str, str, int]
"""Protocol, address and number of a port on the node."""


class CheckedPod:
    """The pod of which a check validates a part.

    It refers to no `Site`, so that a review leaves no reference cycles.

    Attributes:
        spec: Its spec.
        labels: Keys of the labels that the pod will have.
        os: Operating system that the pod names, or an empty string.
        host_network: Whether the pod is in the network of its node.
        host_users: Whether users in its containers are users of the node.
        host_ports: Ports on the node that regular containers have taken so far: the path of the port that took each,
            and whether only because the pod is in its node's network.
        ports: Numbers and protocols of ports of regular containers so far, with path and port of the first of each.
        port_names: Names of these ports, with the path of the first of each.
        volumes: Declared volumes by name.
    """

    def __init__(self, spec: Raw, labels: Collection[str] = ()) -> None:
        self.spec = spec
        self.labels = labels
        self.os: str = spec.get("os", {}).get("name", "")
        self.host_network: bool = spec.get("hostNetwork", False)
        self.host_users: bool = spec.get("hostUsers", True)
        self.host_ports: dict[HostPort, tuple[str, bool]] = {}
        self.ports: dict[tuple[int, str], tuple[str, Raw]] = {}
        self.port_names: dict[str, str] = {}
        first_counts = reversed(spec.get("volumes", ()))
        self.volumes: Mapping[str, Raw] = {each.get("name", ""): each for each in first_counts}


_NO_POD = CheckedPod({})
"""Placeholder for fields that are checked without a pod: no labels, no volumes, no containers."""


class Site(msgspec.Struct, frozen=True):
    """A position in a checked object.

    Attributes:
        case: The case, which gets the problems and has the settings.
        path: The path as users write it: `spec.tasks[0].template.spec`.
        pod: The pod of the position; an empty one for fields that are checked without a pod.
    """

    case: Case
    path: str
    pod: CheckedPod = _NO_POD

    def report(
        self, rule: Rule, message: str, field: str = "", reason: Reason | None = None
    ) -> None:
        """Report a problem here, or at a field below: `name`, `ports[0].containerPort`."""
        self.case.report(rule, f"{self.path}.{field}" if field else self.path, message, reason)


def entries(found: object) -> list[tuple[int, Raw]]:
    """The objects of a list with their indexes, for checks that need a position only to report.

    A null counts as an empty object, as for the API server; other values are skipped.
    """
    if not isinstance(found, list):
        return []
    return [
        (index, {} if each is None else each)
        for index, each in enumerate(found)
        if each is None or isinstance(each, dict)
    ]


Check = Callable[[Site, Any, str, Raw], None]
"""Checks a value. Arguments: the site, the value, its path from the site, and its parent."""

_UNJUDGED: Final[Any] = object()
_ITEMS = "[]"
_FEW = 8
"""Members of a table that are looked up one by one in an object; with more of them, those of the object are looked up in the table."""


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        path: Path of the field in the object of the table; empty for the object itself.
        check: Checks the field's value.
        absent: The value that is checked if the field is absent; by default there is no check.
    """

    path: str
    check: Check
    absent: Any = _UNJUDGED


class KnownValues:
    """The values in which a check has found nothing, so that equal values are not checked again.

    The templates of a user differ in names, labels, arguments and variables, and have the same volumes and mounts, in
    all tasks and Jobs. Checking these takes a sixth of a review, and recognizing them a fiftieth.

    A value with a problem is checked each time, for its own path. A value is known only if nothing was reported, whatever
    the level of the rule, and no suggestion was searched: that depends on the value and its context, not on settings,
    plugins or the place.
    """

    def __init__(self, check: Check, context: Callable[[Site, Raw], object] | None = None) -> None:
        """Know the values of a check that has no effect besides its reports.

        `context` has what it reads besides the value, from the site and the value's parent.
        """
        self._check = check
        self._context = context
        self._known: set[bytes] = set()

    def check(self, site: Site, found: Any, field: str, owner: Raw) -> None:
        """Check a value that is not known."""
        context = self._context
        try:
            key = _encode(found if context is None else (context(site, owner), found))
        except (ValueError, TypeError, OverflowError, RecursionError):
            self._check(site, found, field, owner)  # it has invalid text or excessive numbers
            return
        if key in self._known:
            return
        case, suggestions = site.case, site.case.suggestions
        reported, left = case.reported, suggestions.left
        self._check(site, found, field, owner)
        # If the budget for suggestions is spent, a misspelt name is not noticed.
        if case.reported == reported and suggestions.left == left > 0 and len(key) <= _LONGEST:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known.add(key)


_encode = msgspec.msgpack.Encoder().encode
_LONGEST = 4096
"""Bytes of the longest value that is kept; the volumes of most pods take some hundred."""
MOST_KNOWN = 256
"""Values that a check may know, of 1 MiB at most; before there are more, all are forgotten."""


def below(path: str, *rows: Row) -> tuple[Row, ...]:
    """The rows of a table, for use in the table of a parent that has the object at this path."""
    return tuple(row._replace(path=f"{path}.{row.path}" if row.path else path) for row in rows)


def compiled(*rows: Row) -> Check:
    """Compile a table about an object to one check.

    All members are checked at the position of the first row about a member; list items likewise.
    """
    checks: list[Check | list[Row]] = []
    members: list[Row] = []
    items: list[Row] = []
    for row in rows:
        if not row.path:
            checks.append(row.check)
            continue
        inner = items if row.path.startswith(_ITEMS) else members
        if not inner:
            checks.append(inner)
        inner.append(row)
    return _all(
        [
            each if callable(each) else _items(each) if each is items else _members(each)
            for each in checks
        ]
    )


def _members(rows: Iterable[Row]) -> Check:
    """One check of the members of an object, in the order of the table."""
    checks: list[tuple[str, Check, Check | None, Any]] = []
    for name, inner in _by_name(rows).items():
        absent = [row for row in inner if not row.path and row.absent is not _UNJUDGED]
        other = _all([row.check for row in absent]) if absent else None
        checks.append((name, compiled(*inner), other, absent[-1].absent if absent else None))
    if len(checks) > _FEW and all(other is None for _, _, other, _ in checks):
        return _present_members([(name, check) for name, check, _, _ in checks])

    def members(site: Site, found: Any, field: str, _: Raw) -> None:
        for name, check, other, value in checks:
            if name in found:
                check(site, found[name], f"{field}.{name}" if field else name, found)
            elif other is not None:
                other(site, value, f"{field}.{name}" if field else name, found)

    return members


def _present_members(checks: Sequence[tuple[str, Check]]) -> Check:
    """The same for many members of which few are present, and none is checked if it is absent."""
    place_of = {name: place for place, (name, _) in enumerate(checks)}
    check_of = dict(checks)

    def several(site: Site, found: Any, field: str, _: Raw) -> None:
        for name in sorted(check_of.keys() & found, key=place_of.__getitem__):
            check_of[name](site, found[name], f"{field}.{name}" if field else name, found)

    def members(site: Site, found: Any, field: str, owner: Raw) -> None:
        present = None
        for name in found:
            if name in check_of:
                if present is not None:
                    several(site, found, field, owner)
                    return
                present = name
        if present is not None:
            where = f"{field}.{present}" if field else present
            check_of[present](site, found[present], where, found)

    return members


def _items(rows: Iterable[Row]) -> Check:
    """One check of the items of a list."""
    inner = [row._replace(path=row.path.removeprefix(_ITEMS).removeprefix(".")) for row in rows]
    check = compiled(*inner)

    def items(site: Site, found: Any, field: str, _: Raw) -> None:
        for index, each in enumerate(found):
            check(site, each, f"{field}[{index}]", found)

    return items


def _by_name(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows about each member of an object, as a table about the member."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        names, dot, rest = row.path.partition(".")
        if names.endswith(_ITEMS):
            names, rest = names.removesuffix(_ITEMS), f"{_ITEMS}{dot}{rest}"
        for name in names.split("|"):
            found.setdefault(name, []).append(row._replace(path=rest))
    return found


def compiled_by_field(*rows: Row) -> Check:
    """One check of an object with many fields, most of which are absent; its rows do not check absent fields.

    It checks the present fields in their order.
    """
    check_of = {name: compiled(*inner) for name, inner in _by_name(rows).items()}.get

    def members(site: Site, found: Any, _field: str, _: Raw) -> None:
        for name in found:
            check = check_of(name)
            if check is not None:
                check(site, found[name], name, found)

    return members


def _all(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks

        def both(site: Site, found: Any, field: str, owner: Raw) -> None:
            first(site, found, field, owner)
            second(site, found, field, owner)

        return both

    def judge(site: Site, found: Any, field: str, owner: Raw) -> None:
        for check in checks:
            check(site, found, field, owner)

    return judge
