"""Settings of admission: how strict it is, and what it takes for granted.

Flags of `pumice webhook`, `--set NAME=VALUE` of the offline verbs and the chart's values all end here;
the settings page is generated from the descriptions.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pumice.api import keys
from pumice.api.fields import did_you_mean
from pumice.webhook.levels import Levels, read_levels, read_namespaces, upstream
from pumice.webhook.rules.rule import Level

__all__ = ["LEVELS_BY", "AdmissionSettings", "SettingError"]

LEVELS_BY = {"rules": "rule.CODE", "namespaces": "namespace.NAME.rule.CODE"}
"""Settings that hold levels of rules, each with how one of them is set on the command line."""


class SettingError(ValueError):
    """A setting that does not exist or has no such value; the message is one clear line."""


class AdmissionSettings(BaseModel):
    """How admission judges."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheduler_names: tuple[str, ...] = Field(
        default=(keys.DEFAULT_SCHEDULER,),
        min_length=1,
        description="Schedulers whose pods are judged; Jobs that name none get the first. "
        "Set `scheduler-name` once for each.",
    )
    max_queue_depth: int = Field(
        default=5, ge=1, description="How deep queues may be nested below `root`."
    )
    enable_root_queue_protection: bool = Field(
        default=True,
        description="Refuse changes of capability, deserved and guarantee of the queue `root`.",
    )
    enable_queue_allocated_pods_check: bool = Field(
        default=False, description="Refuse to delete a queue whose pods still hold resources."
    )
    strict_upstream: bool = Field(
        default=False,
        description="Admit what Volcano admits: rules that are stricter than Volcano's only warn.",
    )
    pod_level_resources: bool = Field(
        default=True,
        description="Judge resources of pods as a whole (`spec.resources`), as Kubernetes does from "
        "version 1.34 on; before that it drops them.",
    )
    scheduling_gates_queue_admission: bool = Field(
        default=False,
        description="Hold pods that carry the annotation "
        f'`{keys.QUEUE_ALLOCATION_GATE}: "true"` with a scheduling gate of that name.',
    )
    mpi_depends_on: bool = Field(
        default=False,
        description="Let the master task of a Job with plugin `mpi` depend on its workers, unless it says "
        "itself what it depends on. Off, because Volcano does not add it, and because a controller whose gang "
        "counts pods that are held back, as Volcano's does, would wait for them for ever.",
    )
    rules: dict[str, Level] = Field(
        default={},
        description="How strict a rule is: `enforce` refuses, `warn` admits and tells, `off` says "
        "nothing.",
    )
    namespaces: dict[str, dict[str, Level]] = Field(
        default={}, description="The same for the objects of one namespace."
    )

    @field_validator("rules", mode="before")
    @classmethod
    def _read_rules(cls, found: Any) -> dict[str, Level]:
        return read_levels(found)

    @field_validator("namespaces", mode="before")
    @classmethod
    def _read_namespaces(cls, found: Any) -> dict[str, dict[str, Level]]:
        return read_namespaces(found)

    # These are resolved once, so that no review has to; a private attribute would cost it a microsecond.
    @cached_property
    def cluster_levels(self) -> Levels:
        """Levels of rules that do not have their own one."""
        return (upstream() if self.strict_upstream else {}) | self.rules

    @cached_property
    def namespace_levels(self) -> Mapping[str, Levels]:
        """The same by namespace, for those that have levels of their own."""
        return {name: {**self.cluster_levels, **own} for name, own in self.namespaces.items()}

    def levels(self, namespace: str) -> Levels:
        """Levels of rules that do not have their own one, for the objects of a namespace.

        Args:
            namespace: Its name; empty for objects that are in none.
        """
        return self.namespace_levels.get(namespace, self.cluster_levels)

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "AdmissionSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Lists are set by repeating the name; `scheduler-name` and `scheduler-names` mean the same. How
        strict a rule is, is set by `rule.CODE` and `namespace.NAME.rule.CODE`.

        Raises:
            SettingError: A text is no assignment, or its name or value is not known.
        """
        values: dict[str, Any] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError(f"{assignment!r} is no setting, expected NAME=VALUE")
            if name.startswith(("rule.", "namespace.")):
                _set_level(values, name.strip(), value.strip())
                continue
            field = _field(name.strip())
            if field == "scheduler_names":
                values[field] = (*values.get(field, ()), value.strip())
            else:
                values[field] = value.strip()
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "value_error":
                raise SettingError(str(first["ctx"]["error"])) from None
            name = str(first["loc"][0]).replace("_", "-")
            raise SettingError(
                f"setting {name}: {first['msg']}, found {str(first['input'])!r}"
            ) from None


def _field(name: str) -> str:
    field = name.replace("-", "_")
    if field == "scheduler_name":
        return "scheduler_names"
    if field in LEVELS_BY:
        raise SettingError(f"{name} are set one by one, as {LEVELS_BY[field]}=LEVEL")
    if field not in AdmissionSettings.model_fields:
        known = [each.replace("_", "-") for each in AdmissionSettings.model_fields]
        known = [LEVELS_BY.get(each, each) for each in known]
        hint = did_you_mean(name, known) or f", known are {', '.join(known)}"
        raise SettingError(f"there is no setting {name!r}{hint}")
    return field


def _set_level(values: dict[str, Any], name: str, level: str) -> None:
    """Note the level of a rule: `rule.CODE` or `namespace.NAME.rule.CODE`."""
    levels = values.setdefault("rules", {})
    code = name.removeprefix("rule.")
    if name.startswith("namespace."):
        namespace, found, code = name.removeprefix("namespace.").partition(".rule.")
        if not found:
            raise SettingError(f"{name!r} is no setting, expected {LEVELS_BY['namespaces']}")
        levels = values.setdefault("namespaces", {}).setdefault(namespace, {})
    levels[code] = level
