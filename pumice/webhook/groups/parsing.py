"""Parsing of the file of resource groups, with all problems."""

from typing import Any

from msgspec.structs import replace

from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.settings import document, read_leniently
from pumice.webhook.groups.models import ResourceGroupsFile, judged
from pumice.webhook.rules.resource_groups import ResourceGroup, ResourceGroups

__all__ = ["parse"]

_LIST = "resourceGroups"


def parse(raw: bytes) -> tuple[ResourceGroups, tuple[SettingProblem, ...]]:
    """Parse the file of `--admission-conf`.

    An empty file, or one that is all comments as Volcano ships it, holds no groups.

    Returns:
        The groups, and warnings about parts without effect.

    Raises:
        SettingError: The file is invalid; lists all problems in the order of the file.
    """
    content = document(raw, as_written=True)
    if content is None:
        return ResourceGroups(), ()

    def with_line(found: SettingProblem) -> SettingProblem:
        return replace(found, line=_line(content, found.location))

    try:
        file, unknown = read_leniently(ResourceGroupsFile, content)
    except SettingError as error:
        problems = sorted(map(with_line, error.problems), key=lambda each: each.line or 0)
        raise SettingError(problems, map(with_line, error.warnings)) from None
    groups = [each.read() for each in file.resource_groups]
    warnings = [*unknown, *_doubts(groups), *_overlaps(groups)]
    return ResourceGroups(groups), tuple(map(with_line, warnings))


def _line(value: Any, location: tuple[str | int, ...]) -> int:
    """The line of a value, or of the nearest parent that is in the file."""
    line: int = value.line
    for step in location:
        try:
            value = value[step]
            line = value.line
        except (LookupError, TypeError, AttributeError):
            break
    return line


def _doubts(groups: list[ResourceGroup]) -> list[SettingProblem]:
    """Warnings about groups without pods, and warnings of the rules of pod templates."""
    warnings = []
    for index, group in enumerate(groups):
        place = (_LIST, index)
        given = {"tolerations": list(group.tolerations), "affinity": group.affinity}
        _, doubts = judged({key: value for key, value in given.items() if value})
        warnings += [SettingProblem((*place, *where), message) for where, message in doubts]
        if not group.namespaces and not group.annotations:
            message = "has no value, so no pod belongs to this group"
            warnings.append(SettingProblem((*place, "object"), message))
    return warnings


def _overlaps(groups: list[ResourceGroup]) -> list[SettingProblem]:
    """Warnings about claims of a later group that an earlier one already has."""
    warnings = []
    seen: dict[str | tuple[str, str], int] = {}
    for index, group in enumerate(groups):
        claims: list[str | tuple[str, str]] = [*group.namespaces, *group.annotations]
        for claim in dict.fromkeys(claims):
            first = seen.setdefault(claim, index)
            if first != index:
                is_name = isinstance(claim, str)
                what = f'namespace "{claim}"' if is_name else f'annotation "{": ".join(claim)}"'
                earlier = f'"{groups[first].name}" (resourceGroups[{first}])'
                message = f"claims {what}, which group {earlier} has already; that one counts"
                warnings.append(SettingProblem((_LIST, index), message))
    return warnings
