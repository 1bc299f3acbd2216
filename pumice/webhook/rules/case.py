"""The case: the object under review with all that its rules may look at, and where they report problems.

If a field has a wrong type, it is reported, and its intended value is not guessed. The rules then check the object without
it (`check_rest`), so that a wrong type and a misspelt plugin in one object are both reported. Its absence may cause
problems that the whole object does not have, or hide others:

- at the field, inside it and around it: a list of policies without one of them may be too short
- where a rule compares fields (`Rule.compares`), of which one may be the missing one

These results are left out. All others also hold for the whole object, since a rule about one field is right about every
field that is present.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TypeVar

import msgspec

from pumice.api.fields import FieldError, Reason, Suggestions
from pumice.api.queues import Queue
from pumice.plugins import Registry
from pumice.plugins.other_owners import Owner, OwnerKey, OwnerWirings
from pumice.webhook.patches import Patch
from pumice.webhook.rules.paths import Within
from pumice.webhook.rules.resource_groups import NO_GROUPS, ResourceGroups
from pumice.webhook.rules.rule import Level, Rule, RuleSettings
from pumice.webhook.view import AdmissionView

T = TypeVar("T")

Check = tuple[Rule, Callable[["Case", T], None]]
"""A check, and the rule whose code is reported if the check raises; `CHECKS` of a kind has them in the order of reports."""


class EnoughError(Exception):
    """The maximum number of problems is reached, so the object is not checked further."""


class Case(msgspec.Struct, eq=False):
    """The validation of one object.

    Attributes:
        settings: The settings that rules read.
        view: The objects of the cluster.
        plugins: The job plugins that exist.
        wirings: Wires pods of other controllers.
        groups: Resource groups that pods may belong to.
        creating: Whether the object is new; if false it is updated or deleted.
        stricter: Whether Volcano does not check this object, so that with `strict-upstream` every rule only warns.
        uid: UID of the review, for messages about defects of Pumice.
        namespace: Namespace of the object; empty for a cluster-scoped one.
        review_bytes: Size of the review; 0 if it is not known.
        suggestions: Finds names that were probably meant, within a budget for the whole review.
        most: Maximum number of errors; None to find all.
        levels: Levels that settings give rules, by code.
        errors: Why the object is refused; empty if it is admitted.
        warnings: Valid values that are probably a mistake.
        reported: Number of reported problems, also of those that settings turn off.
        excesses: By how much a rule is broken, by code and path, for those that can be measured.
        patch: The changes that admission makes.
        missing_queues: Queues that the view does not have; the server asks the API server for them
            before it refuses the object.
        missing_owners: Owners of a pod that the view does not have, or has in a version older than the pod.
        crashes: Rules that raised, with their exceptions.
    """

    settings: RuleSettings
    view: AdmissionView
    plugins: Registry
    wirings: OwnerWirings | None = None
    groups: ResourceGroups = NO_GROUPS
    creating: bool = True
    stricter: bool = False
    uid: str = ""
    namespace: str = ""
    review_bytes: int = 0
    suggestions: Suggestions = msgspec.field(default_factory=Suggestions)
    most: int | None = None
    levels: Mapping[str, Level] = {}
    errors: list[FieldError] = []
    warnings: list[FieldError] = []
    reported: int = 0
    excesses: dict[tuple[str, str], int] = {}
    patch: Patch = msgspec.field(default_factory=Patch)
    missing_queues: list[str] = []
    missing_owners: list[OwnerKey] = []
    crashes: list[tuple[str, Exception]] = []

    def __post_init__(self) -> None:
        self.levels = self.settings.levels(self.namespace)

    def report(
        self,
        rule: Rule,
        path: str,
        message: str,
        reason: Reason | None = None,
        *,
        excess: int | None = None,
        stricter: bool = False,
    ) -> bool:
        """Report that the object breaks a rule.

        Args:
            rule: The rule; its level decides whether the object is refused, unless settings override it.
            path: Path of the field.
            message: What is wrong, what was found, and how to fix it.
            reason: Kubernetes' class of the error, if it is not the rule's.
            excess: By how much the rule is broken, if that can be measured. An update that does not increase it is
                admitted, also if numbers in the message change.
            stricter: Whether Volcano admits this problem, but not all that break the rule.

        Returns whether the object is refused for it; raises `EnoughError` like `add`.
        """
        if excess is not None:
            self.excesses[rule.code, path] = excess
        found = FieldError(path, message, rule.code, reason or rule.reason)
        return self.add(found, rule.level, stricter=stricter or rule.stricter)

    def add(self, found: FieldError, level: Level, *, stricter: bool = False) -> bool:
        """Report a problem that was found without a case, at the default level of its rule; `stricter` as in `report`.

        Returns whether the object is refused for it; raises `EnoughError` if the maximum number of errors is reached.
        """
        self.reported += 1
        if level == "enforce" and (stricter or self.stricter) and self.settings.strict_upstream:
            level = "warn"
        level = self.levels.get(found.code, level)
        if level == "enforce":
            self.errors.append(found)
            if self.most is not None and len(self.errors) >= self.most:
                raise EnoughError
        elif level == "warn":
            self.warnings.append(found)
        return level == "enforce"

    def did_you_mean(self, found: str, candidates: Iterable[str]) -> str:
        """` (did you mean "x"?)` for the closest candidate; empty when none is close, or the budget is spent."""
        return self.suggestions.did_you_mean(found, candidates)

    def queue(self, name: str) -> Queue | None:
        """Look up a queue; a missing one is recorded in `missing_queues`."""
        queue = self.view.queue(name)
        if queue is None:
            self.missing_queues.append(name)
        return queue

    def owner(self, key: OwnerKey) -> Owner | None:
        """Look up the owner of a pod; a missing one is recorded in `missing_owners`."""
        owner = self.view.owner(key)
        if owner is None:
            self.missing_owners.append(key)
        return owner

    def sibling(self, suggestions: Suggestions | None = None) -> "Case":
        """A case with the same cluster and settings and no results, for an object that is checked separately.

        It shares the budget for suggestions, unless another one is given.
        """
        return msgspec.structs.replace(
            self,
            suggestions=suggestions or self.suggestions,
            most=None,
            errors=[],
            warnings=[],
            excesses={},
            patch=Patch(),
            missing_queues=[],
            missing_owners=[],
            crashes=[],
        )

    def crashed(self, code: str, error: Exception) -> None:
        """Refuse the object under the code of a rule that raised, because it was not checked.

        Settings do not apply: a check reports several rules, so it is unknown which of them failed.
        """
        self.crashes.append((code, error))
        message = (
            f"this rule failed ({type(error).__name__}: {error}), which is a defect of Pumice and not of "
            f"the object; review {self.uid}"
        )
        self.errors.append(FieldError("", message, code))

    def is_crash(self, found: FieldError) -> bool:
        """True if a problem only reports that a rule raised."""
        return not found.path and any(code == found.code for code, _ in self.crashes)


def run(case: Case, checks: Iterable[Check[T]], subject: T) -> None:
    """Run all checks; if one raises, the others still run.

    Raises:
        EnoughError: The maximum number of errors of the case is reached.
    """
    for rule, judge in checks:
        try:
            judge(case, subject)
        except EnoughError:
            raise
        except Exception as error:
            case.crashed(rule.code, error)


def check_rest(
    case: Case,
    dropped: Iterable[str],
    comparing: Container[str],
    check: Callable[[Case], None],
) -> None:
    """Check an object without some fields, and report what also holds for the whole object.

    Args:
        case: The case of the object, in which the fields are already reported.
        dropped: Paths of the fields.
        comparing: Codes of the rules that compare fields.
        check: Checks the rest of the object; gets a case of its own.
    """
    rest = case.sibling()
    check(rest)
    paths = Within(dropped)
    case.errors += unaffected(rest.errors, paths, comparing)
    case.warnings += unaffected(rest.warnings, paths, comparing)
    case.excesses |= rest.excesses
    case.missing_queues += rest.missing_queues
    case.crashes += rest.crashes


def unaffected(
    found: Iterable[FieldError], dropped: Within, comparing: Container[str]
) -> list[FieldError]:
    """Results about an object without some fields that also hold for the whole object; arguments as in `check_rest`."""
    return [
        each
        for each in found
        if each.code not in comparing and each.path not in dropped and not dropped.below(each.path)
    ]
