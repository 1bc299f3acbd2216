"""Strategic merge patches: merge patches that know which lists are keyed.

Source: Kubernetes "API conventions", section on strategic merge patch, with the directives `$patch`,
`$retainKeys`, `$deleteFromPrimitiveList/<list>` and `$setElementOrder/<list>`.
"""

from typing import Any

from pumice.embedded import statuses
from pumice.embedded.fieldtypes import strategic_key

Json = Any
_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(original: dict[str, Json], patch: dict[str, Json]) -> dict[str, Json]:
    """Apply a patch to an object, which is edited and returned.

    Raises:
        ApiStatusError: 400 for a directive that makes no sense.
    """
    return _merge_map(original, patch, "")


def _merge_map(original: dict[str, Json], patch: dict[str, Json], parent: str) -> dict[str, Json]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise statuses.bad_request(f"Unrecognized patch directive: {directive}")
    if _RETAIN in patch:
        for key in [key for key in original if key not in patch[_RETAIN]]:
            del original[key]
    for key, value in patch.items():
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            original[field] = [each for each in original.get(field) or () if each not in value]
        elif not key.startswith("$"):
            _merge_field(original, key, value, parent, patch.get(_ORDER + key))
    for key, order in patch.items():
        field = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and field not in patch and isinstance(original.get(field), list):
            merge_key = strategic_key(parent, field)
            before = original[field]
            original[field] = _ordered(before, before, order, merge_key or "")
    return original


def _merge_field(
    original: dict[str, Json], key: str, value: Json, parent: str, order: list[Json] | None
) -> None:
    before = original.get(key)
    if value is None:
        original.pop(key, None)
    elif isinstance(value, dict):
        # A map that is new is merged into nothing, so that directives and nulls in it are gone.
        merged = _merge_map(before if isinstance(before, dict) else {}, value, key)
        if value.get(_PATCH) == "delete":
            original.pop(key, None)
        else:
            original[key] = merged
    elif isinstance(value, list):
        merge_key = strategic_key(parent, key)
        current = before if isinstance(before, list) else []
        if merge_key is None:
            original[key] = value
        elif merge_key == "":
            merged_items = [*current, *(each for each in value if each not in current)]
            original[key] = _ordered(merged_items, current, order or value, "")
        else:
            merged_items = _merge_list(current, value, key, merge_key)
            original[key] = _ordered(merged_items, current, order or value, merge_key)
    else:
        original[key] = value


def _merge_list(original: list[Json], patch: list[Json], field: str, merge_key: str) -> list[Json]:
    if any(isinstance(each, dict) and each.get(_PATCH) == "replace" for each in patch):
        return [each for each in patch if each.get(_PATCH) != "replace"]
    result = list(original)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise statuses.bad_request(
                f"map: {item} does not contain declared merge key: {merge_key}"
            )
        found = [
            index for index, each in enumerate(result) if each.get(merge_key) == item[merge_key]
        ]
        if item.get(_PATCH) == "delete":
            for index in reversed(found):
                del result[index]
        elif found:
            result[found[0]] = _merge_map(result[found[0]], item, field)
        else:
            result.append(_merge_map({}, item, field))
    return result


def _ordered(
    merged: list[Json], before: list[Json], order: list[Json] | None, merge_key: str
) -> list[Json]:
    """Bring a merged list into the order asked for."""
    if not order:
        return merged

    def identity(item: Json) -> str:
        return str(item.get(merge_key) if merge_key and isinstance(item, dict) else item)

    items = {identity(each): each for each in merged}
    wanted = in_order(list(items), [identity(each) for each in before], list(map(identity, order)))
    return [items[each] for each in wanted]


def in_order(names: list[str], before: list[str], order: list[str]) -> list[str]:
    """Order names as wanted; those that are not mentioned keep their place among the others.

    Args:
        names: The names, without repetition.
        before: How they stood, as far as they did.
        order: How those that are mentioned are wanted.
    """
    ranks = {name: rank for rank, name in reversed(list(enumerate(order)))}
    places = {name: place for place, name in enumerate(before)}
    named = sorted((name for name in names if name in ranks), key=ranks.__getitem__)
    others = [name for name in names if name not in ranks]
    result: list[str] = []
    while named and others:
        place, other = places.get(named[0]), places.get(others[0])
        first = others if place is not None and other is not None and other < place else named
        result.append(first.pop(0))
    return result + named + others
