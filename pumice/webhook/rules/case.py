"""What a rule is given, and where it reports."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from pumice.api.fields import FieldError
from pumice.api.queues import Queue
from pumice.plugins import Registry
from pumice.webhook.patches import Patch
from pumice.webhook.rules.rule import Rule
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import AdmissionView

__all__ = ["Case", "Check", "run"]

T = TypeVar("T")

Check = tuple[Rule, Callable[["Case", T], None]]
"""A function that judges, and the rule under whose code it fails should it crash."""


class Case:
    """One object under judgement.

    Attributes:
        settings: How strict to be.
        view: The cluster, as far as rules look at it.
        plugins: The job plugins that exist.
        annotating: Those of them that write annotations onto a Job.
        uid: Of the review, for messages about faults of ours.
        creating: Whether the object is new; otherwise it changes or goes.
        errors: Why it is refused; empty when it is not.
        warnings: What is legal and doubtful.
        patch: What admission changes about it.
        missing_queues: Queues looked up in vain; the server asks the API server for them before
            it believes it.
        crashes: Rules that raised, with what they raised.
    """

    __slots__ = (
        "annotating",
        "crashes",
        "creating",
        "errors",
        "missing_queues",
        "patch",
        "plugins",
        "settings",
        "uid",
        "view",
        "warnings",
    )

    def __init__(
        self,
        settings: AdmissionSettings,
        view: AdmissionView,
        plugins: Registry,
        *,
        annotating: Collection[str] = (),
        creating: bool = True,
        uid: str = "",
    ) -> None:
        self.settings = settings
        self.view = view
        self.plugins = plugins
        self.annotating = annotating
        self.creating = creating
        self.uid = uid
        self.errors: list[FieldError] = []
        self.warnings: list[FieldError] = []
        self.patch = Patch()
        self.missing_queues: list[str] = []
        self.crashes: list[tuple[str, Exception]] = []

    def report(self, rule: Rule, path: str, message: str) -> None:
        """Something breaks a rule.

        Args:
            rule: Which one; it decides whether the object is refused.
            path: Where.
            message: What was found and what would be right.
        """
        found = FieldError(path, message, rule.code, rule.reason)
        if rule.level == "warn" or (rule.stricter and self.settings.strict_upstream):
            self.warnings.append(found)
        else:
            self.errors.append(found)

    def queue(self, name: str) -> Queue | None:
        """Look a queue up, and remember it when it is not there."""
        queue = self.view.queue(name)
        if queue is None:
            self.missing_queues.append(name)
        return queue

    def sibling(self) -> "Case":
        """A case of the same cluster and settings, for what the object was before."""
        return Case(
            self.settings,
            self.view,
            self.plugins,
            annotating=self.annotating,
            creating=self.creating,
            uid=self.uid,
        )

    def crashed(self, code: str, error: Exception) -> None:
        """A rule raised: refuse under its code, rather than admit what nobody judged."""
        self.crashes.append((code, error))
        message = (
            f"this rule failed ({type(error).__name__}: {error}), which is a defect of Pumice and not of "
            f"the object; review {self.uid}"
        )
        self.errors.append(FieldError("", message, code))


def run(case: Case, checks: Iterable[Check[T]], subject: T) -> None:
    """Judge by all checks; one that raises does not keep the others from judging."""
    for rule, judge in checks:
        try:
            judge(case, subject)
        except Exception as error:
            case.crashed(rule.code, error)
