"""Tables of checks: which fields of an object are judged, and by what.

A row names a field by its path (`tolerations[].effect`; `a|b` stands for both fields) and a check. Nearly all
checks have one of the shapes in `shapes`; others are functions beside their table. A table is compiled once,
when its module is imported, to nested functions. Problems are told in the order of the table, except for the fields of
pods and containers, which have so many that only those that are there are looked at, in their order there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pumice.webhook.rules.templates.site import Raw, Site

__all__ = ["Check", "Row", "below", "compiled", "compiled_by_field"]

Check = Callable[[Site, Any, str, Raw], None]
"""Judges a value. Arguments: the site; the value; where it is, from the site on; the object or list that it is in."""

_UNJUDGED: Final[Any] = object()
_ITEMS = "[]"


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        path: Of the field, from the object on that the table is about; empty for this object itself.
        check: Judges the field's value.
        absent: The value that an absent field counts as; by default it is not judged.
    """

    path: str
    check: Check
    absent: Any = _UNJUDGED


def below(path: str, rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows of a table about an object, for the table about what has the object at this path."""
    return tuple(row._replace(path=f"{path}.{row.path}" if row.path else path) for row in rows)


class _Node:
    """Checks of a value and of what is in it, in the order of their rows."""

    def __init__(self) -> None:
        self.checks: list[Check | _Members | _Items] = []
        self.absent: list[Check] = []
        self.default: Any = _UNJUDGED
        self._members: _Members | None = None
        self._items: _Items | None = None

    def members(self) -> "_Members":
        """What is in an object, by name."""
        if self._members is None:
            self._members = _Members()
            self.checks.append(self._members)
        return self._members

    def items(self) -> "_Node":
        """What is in a list."""
        if self._items is None:
            self._items = _Items(_Node())
            self.checks.append(self._items)
        return self._items.node

    def reached(self, path: str) -> "Iterator[_Node]":
        """The nodes that a path names, which are made if need be."""
        names, _, rest = path.partition(".")
        for name in names.removesuffix(_ITEMS).split("|"):
            node = self.members().setdefault(name, _Node()) if name else self
            if names.endswith(_ITEMS):
                node = node.items()
            yield from node.reached(rest) if rest else (node,)

    def check(self) -> Check:
        """One check for all of this."""
        checks = [
            each.check() if isinstance(each, _Members | _Items) else each for each in self.checks
        ]
        return _all(checks)


class _Members(dict[str, _Node]):
    """What is in an object, by name."""

    def check(self) -> Check:
        """One check for all members, in the order of the table."""
        checks = [
            (name, node.check(), _all(node.absent), node.default) for name, node in self.items()
        ]

        def members(site: Site, found: Any, field: str, _: Raw) -> None:
            for name, check, absent, default in checks:
                if name in found:
                    check(site, found[name], f"{field}.{name}" if field else name, found)
                elif default is not _UNJUDGED:
                    absent(site, default, f"{field}.{name}" if field else name, found)

        return members


class _Items(NamedTuple):
    """What is in a list."""

    node: _Node

    def check(self) -> Check:
        """One check for all items."""
        check = self.node.check()

        def items(site: Site, found: Any, field: str, _: Raw) -> None:
            for index, each in enumerate(found):
                check(site, each, f"{field}[{index}]", found)

        return items


def compiled(rows: Iterable[Row]) -> Check:
    """One check of an object from a table about it."""
    return _root(rows).check()


def _root(rows: Iterable[Row]) -> _Node:
    root = _Node()
    for path, check, absent in rows:
        for node in root.reached(path) if path else (root,):
            node.checks.append(check)
            if absent is not _UNJUDGED:
                node.absent.append(check)
                node.default = absent
    return root


def compiled_by_field(rows: Iterable[Row]) -> Check:
    """One check of an object that has many fields, of which most are absent; none of its rows judges absent ones.

    It looks at the fields that the object has, in their order there.
    """
    check_of = {name: node.check() for name, node in _root(rows).members().items()}.get

    def members(site: Site, found: Any, _field: str, _: Raw) -> None:
        for name in found:
            check = check_of(name)
            if check is not None:
                check(site, found[name], name, found)

    return members


def _all(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]

    def judge(site: Site, found: Any, field: str, owner: Raw) -> None:
        for check in checks:
            check(site, found, field, owner)

    return judge
