"""What of a template is in order at a glance, so that no other rule need look at it.

Most of what a container says are arguments and variables. Of a list of texts there is nothing to say, whatever
the texts are, nor of variables with good names and texts for values. These are left out before a template is
judged, and before it is looked for among those that are known: Jobs of a sweep differ in nothing else.
"""

from typing import Any

from pumice.api.names import env_name_problem

__all__ = ["without_plain"]

Raw = dict[str, Any]


def without_plain(template: Raw) -> Raw:
    """A copy without these of a template, which may be any object."""
    spec = template.get("spec")
    if type(spec) is not dict or type(found := spec.get("containers")) is not list:
        return template
    containers = [_without_plain(each) if type(each) is dict else each for each in found]
    return {**template, "spec": {**spec, "containers": containers}}


def _without_plain(container: Raw) -> Raw:
    rest = {**container}
    for field, is_plain in _PLAIN.items():
        if field in rest and is_plain(rest[field]):
            del rest[field]
    return rest


def _are_texts(found: Any) -> bool:
    """Whether this is a list of texts."""
    try:
        "".join(found)
    except TypeError:
        return False
    return type(found) is list


def _are_variables(found: Any) -> bool:
    """Whether these are texts under good names, each under its own: of two with one name, one may hold the other."""
    try:
        values = {each["name"]: each["value"] for each in found if len(each) == 2}
        names = "".join(values)  # what makes one bad is a character, wherever it stands
        "".join(values.values())
    except (KeyError, TypeError):
        return False  # some have their values from elsewhere
    return len(values) == len(found) and "" not in values and env_name_problem(names) is None


_PLAIN = {"command": _are_texts, "args": _are_texts, "env": _are_variables}
