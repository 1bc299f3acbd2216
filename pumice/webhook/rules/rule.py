"""What a rule is, apart from the code that checks it, and the settings that rules read.

Settings know every rule by its code, so rules cannot import settings. `Terms` names what rules read of
them; `pumice.webhook.settings.AdmissionSettings` implements it and documents each setting for users.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pumice.api.fields import Reason

__all__ = ["Level", "Rule", "Terms"]

Level = Literal["enforce", "warn", "off"]
"""`enforce` refuses the object, `warn` admits it and tells the user, `off` says nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of admission, as the docs show it.

    Attributes:
        code: Stable name; stands in every message, in audit annotations and in metrics.
        title: What must hold, in one line.
        why: What goes wrong otherwise.
        example: A fragment of a manifest that breaks the rule.
        reason: Kubernetes' class of the error.
        level: How strict it is unless settings say otherwise.
        stricter: Volcano admits what breaks this rule; setting `strict-upstream` makes it a warning.
        compares: The rule weighs several fields against each other, so it cannot judge an object
            of which one is unreadable and nothing can be read in its place. One that finds the same name
            twice needs no others.
        since: Version that brought the rule.
    """

    code: str
    title: str
    why: str
    example: str
    reason: Reason = "FieldValueInvalid"
    level: Level = "enforce"
    stricter: bool = False
    compares: bool = False
    since: str = "0.1"


class Terms(Protocol):
    """Terms of admission."""

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """Schedulers whose pods are judged; the first is for Jobs that name none."""
        ...

    @property
    def max_queue_depth(self) -> int:
        """How deep queues may be nested below `root`."""
        ...

    @property
    def enable_root_queue_protection(self) -> bool:
        """Whether the amounts of queue `root` stay as they are."""
        ...

    @property
    def enable_queue_allocated_pods_check(self) -> bool:
        """Whether a queue with running pods stays."""
        ...

    @property
    def strict_upstream(self) -> bool:
        """Whether to admit what Volcano admits."""
        ...

    @property
    def pod_level_resources(self) -> bool:
        """Whether pods have resources as a whole."""
        ...

    @property
    def scheduling_gates_queue_admission(self) -> bool:
        """Whether pods that ask for it are held with a scheduling gate."""
        ...

    @property
    def mpi_depends_on(self) -> bool:
        """Whether the master of an MPI Job waits for its workers."""
        ...

    @property
    def cluster_levels(self) -> Mapping[str, Level]:
        """How strict rules are that do not have their own level, by code."""
        ...

    def levels(self, namespace: str) -> Mapping[str, Level]:
        """The same for the objects of a namespace; empty for objects that are in none."""
        ...
