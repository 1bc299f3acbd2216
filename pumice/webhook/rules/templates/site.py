"""Where in an object a check looks, and where it reports.

Templates stay raw JSON, so a check reckons with any shape: `types` has reported what is of the wrong
type, and every other check passes over what it cannot read.
"""

from collections.abc import Iterator
from typing import Any

from pumice.api.fields import Reason
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["Entries", "Raw", "Site", "entries"]

Raw = dict[str, Any]

Entries = list[tuple[int, Raw]]
"""Objects of a list with their positions."""


class Site:
    """A place in an object under judgement.

    Attributes:
        case: The case that is judged: where problems go, and what the settings are.
        path: The place as users write it: `spec.tasks[0].template.spec`.
    """

    __slots__ = ("case", "path")

    def __init__(self, case: Case, path: str) -> None:
        """Stand at a path of the case."""
        self.case = case
        self.path = path

    def at(self, name: str) -> "Site":
        """The place of a member."""
        return Site(self.case, f"{self.path}.{name}")

    def item(self, name: str, index: int) -> "Site":
        """The place of an item of a member that is a list."""
        return Site(self.case, f"{self.path}.{name}[{index}]")

    def objects(self, parent: Raw, name: str) -> Iterator[tuple["Site", Raw]]:
        """The items of a member that is a list of objects, each with its place; what is none is passed over."""
        found = parent.get(name)
        if isinstance(found, list):
            for index, each in enumerate(found):
                if isinstance(each, dict):
                    yield self.item(name, index), each

    def report(
        self, rule: Rule, message: str, field: str = "", reason: Reason | None = None
    ) -> None:
        """Say what is wrong here, or in a member of what is here.

        Args:
            rule: Which rule it breaks.
            message: What was found and what would be right.
            field: The member, as it continues the path: `name`, `ports[0].containerPort`.
            reason: Kubernetes' class of the error, where it is not the rule's.
        """
        self.case.report(rule, f"{self.path}.{field}" if field else self.path, message, reason)


def entries(found: object) -> Entries:
    """The objects of a list with their positions, for checks that need a place only to report.

    A null counts as an empty object, as it does for the API server; what is neither is passed over.
    """
    if not isinstance(found, list):
        return []
    return [
        (index, {} if each is None else each)
        for index, each in enumerate(found)
        if each is None or isinstance(each, dict)
    ]
