"""The description of a rule, without the code that checks it; and the settings that rules read, each with a description for users.

`pumice.webhook.settings` parses the settings with pydantic, and checks the codes of rules, which rules cannot know.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property, partial
from types import ModuleType
from typing import Any, Literal

from pumice.api import keys
from pumice.api.fields import Reason
from pumice.api.jobs import DEFAULT_MAX_PODS

Level = Literal["enforce", "warn", "off"]
"""`enforce` refuses the object, `warn` admits it with a warning, `off` disables the rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of admission, as in the docs.

    Attributes:
        code: Stable name, used in messages, audit annotations and metrics.
        title: What must hold, in one line.
        why: What goes wrong otherwise.
        example: A fragment of a manifest that breaks the rule.
        reason: Kubernetes' class of the error.
        level: Default level.
        stricter: Whether Volcano admits objects that break it; setting `strict-upstream` makes it a warning.
        compares: Whether it compares several fields, so that its result about an object without one of them may be
            wrong. A rule about duplicate names does not.
        since: First version with the rule.
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


warned = partial(Rule, level="warn")
"""A rule that warns, unless settings say otherwise."""

stricter = partial(Rule, stricter=True)
"""A rule that refuses what Volcano admits."""


def rules_in(*files: ModuleType) -> tuple[Rule, ...]:
    """The rules of some files, in the order of their definition; an imported rule is listed with the first file that has it."""
    found = (value for file in files for value in vars(file).values() if isinstance(value, Rule))
    return tuple(dict.fromkeys(found))


Levels = Mapping[str, Level]
"""Levels by code; missing rules have their own level."""


def _setting(default: object, description: str, **limits: int) -> Any:
    """A setting with its description, and its limits by pydantic's names."""
    return field(default=default, metadata={"description": description, "strict": True, **limits})


@dataclass(frozen=True)
class RuleSettings:
    """The settings that rules read, and how strict each rule is.

    Precedence of levels: the object's namespace > the whole cluster > `strict-upstream` > the rule's own.

    Attributes:
        rules: Levels of the whole cluster, by code.
        namespaces: Levels of the objects of a namespace, by its name.
    """

    scheduler_names: tuple[str, ...] = _setting(
        (keys.DEFAULT_SCHEDULER,),
        "Schedulers whose pods are judged; Jobs that name none get the first. "
        "Set `scheduler-name` once for each.",
        min_length=1,
    )
    max_queue_depth: int = _setting(5, "How deep queues may be nested below `root`.", ge=1)
    enable_root_queue_protection: bool = _setting(
        True, "Refuse changes of capability, deserved and guarantee of the queue `root`."
    )
    enable_queue_allocated_pods_check: bool = _setting(
        False, "Refuse to delete a queue whose pods still hold resources."
    )
    max_pods_per_job: int = _setting(
        DEFAULT_MAX_PODS,
        "Pods that a Job may ask for, and an object of another controller whose pods plugins wire. "
        "`pumice controller` has an option of this name; the chart sets both.",
        ge=1,
    )
    strict_upstream: bool = _setting(
        False, "Admit what Volcano admits: rules that are stricter than Volcano's only warn."
    )
    pod_level_resources: bool = _setting(
        True,
        "Judge resources of pods as a whole (`spec.resources`), as Kubernetes does from "
        "version 1.34 on; before that it drops them.",
    )
    scheduling_gates_queue_admission: bool = _setting(
        False,
        "Hold pods that carry the annotation "
        f'`{keys.QUEUE_ALLOCATION_GATE}: "true"` with a scheduling gate of that name.',
    )
    mpi_depends_on: bool = _setting(
        False,
        "Let the master task of a Job with plugin `mpi` depend on its workers, unless it says "
        "itself what it depends on. Off, because Volcano does not add it, and because a controller whose gang "
        "counts pods that are held back, as Volcano's does, would wait for them forever.",
    )
    rules: Levels = field(default_factory=dict)
    namespaces: Mapping[str, Levels] = field(default_factory=dict)

    @classmethod
    def declared(cls) -> dict[str, Field[Any]]:
        """Every described setting by its name in Python; its `metadata` has its description and limits."""
        return {each.name: each for each in fields(cls) if each.metadata}

    @cached_property
    def namespace_levels(self) -> Mapping[str, Levels]:
        """Levels for namespaces with levels of their own, resolved once, so that no review has to."""
        return {name: {**self.rules, **own} for name, own in self.namespaces.items()}

    def levels(self, namespace: str) -> Levels:
        """Levels for the objects of a namespace; its name is empty for cluster-scoped objects."""
        return self.namespace_levels.get(namespace, self.rules)
