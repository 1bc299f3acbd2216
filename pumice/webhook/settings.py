"""Settings of admission: how strict it is, and what it takes for granted.

Flags of `pumice webhook`, `--set NAME=VALUE` of the offline verbs and the chart's values all end here;
the settings page is generated from the descriptions.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pumice.api import keys
from pumice.api.fields import did_you_mean

__all__ = ["AdmissionSettings", "SettingError"]


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

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> "AdmissionSettings":
        """Read `NAME=VALUE` texts, names with dashes as on the command line.

        Lists are set by repeating the name; `scheduler-name` and `scheduler-names` mean the same.

        Raises:
            SettingError: A text is no assignment, or its name or value is not known.
        """
        values: dict[str, Any] = {}
        for assignment in assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise SettingError(f"{assignment!r} is no setting, expected NAME=VALUE")
            field = _field(name.strip())
            if field == "scheduler_names":
                values[field] = (*values.get(field, ()), value.strip())
            else:
                values[field] = value.strip()
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]).replace("_", "-")
            raise SettingError(
                f"setting {name}: {first['msg']}, found {str(first['input'])!r}"
            ) from None


def _field(name: str) -> str:
    field = name.replace("-", "_")
    if field == "scheduler_name":
        return "scheduler_names"
    if field not in AdmissionSettings.model_fields:
        known = [each.replace("_", "-") for each in AdmissionSettings.model_fields]
        hint = did_you_mean(name, known) or f", known are {', '.join(known)}"
        raise SettingError(f"there is no setting {name!r}{hint}")
    return field
