"""Checks of the types of plugin results.

Plugins may come from other packages, and Python does not enforce the annotations of their methods. A wrong result is
reported here, with the plugin that returned it.
"""

from collections.abc import Mapping
from typing import Any

from pumice.api.fields import FieldError
from pumice.api.kinds import of_object
from pumice.plugins.edits import PodEdits
from pumice.plugins.interface import Findings, KeySecret

__all__ = [
    "fault_of_annotations",
    "fault_of_editor",
    "fault_of_edits",
    "fault_of_findings",
    "fault_of_objects",
    "fault_of_secrets",
]

_NOTHING = Findings()
_LONGEST = 60
"""Maximum length of a wrong result in a message."""


def fault_of_findings(found: Any) -> str:
    """What is wrong with the result of `check`; empty if it is valid."""
    if not isinstance(found, Findings):
        return f"check gives {_shown(found)}, expected Findings"
    if found == _NOTHING:
        return ""
    for name in ("errors", "warnings"):
        listed = getattr(found, name)
        if not isinstance(listed, tuple | list):
            return f"check gives {_shown(listed)} for {name}, expected a tuple of FieldError"
        for each in listed:
            if not isinstance(each, FieldError):
                return f"check has {_shown(each)} among its {name}, expected FieldError"
    return ""


def fault_of_annotations(found: Any) -> str:
    """What is wrong with the result of `job_annotations`; empty if it is valid."""
    if not isinstance(found, Mapping):
        return f"job_annotations gives {_shown(found)}, expected a dict of texts"
    for key, value in found.items():
        if not isinstance(key, str) or not isinstance(value, str):
            return f"job_annotations gives {_shown(value)} for {_shown(key)}, expected texts"
    return ""


def fault_of_objects(found: list[Any]) -> str:
    """What is wrong with the result of `objects`; empty if it is valid."""
    for each in found:
        metadata = each.get("metadata") if isinstance(each, dict) else None
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            return f"objects gives {_shown(each)}, expected a manifest with a name"
        if of_object(each) is None:
            what = f"{each.get('apiVersion')} {each.get('kind')}"
            return f"objects gives a {what}, which is no kind that Pumice knows"
    return ""


def fault_of_secrets(found: list[Any]) -> str:
    """What is wrong with the result of `secrets`; empty if it is valid."""
    for each in found:
        if not isinstance(each, KeySecret):
            return f"secrets gives {_shown(each)}, expected KeySecret"
    return ""


def fault_of_editor(found: Any) -> str:
    """What is wrong with the result of `for_job`; empty if it is valid."""
    if callable(found):
        return ""
    return f"for_job gives {_shown(found)}, expected a function of a task and an index"


def fault_of_edits(found: Any) -> str:
    """What is wrong with edits that could be applied and would make an invalid pod; empty if they are valid.

    Other invalid edits fail when they are applied.
    """
    if not isinstance(found, PodEdits):
        return f"pod_edits gives {_shown(found)}, expected PodEdits"
    env: Any = found.env
    for variable in env:
        if not isinstance(variable.value, str):
            return f"the value of {variable.name} is {_shown(variable.value)}, expected text"
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
