"""Lists of tasks in the arguments of `task-topology`.

There are three equivalent spellings: JSON (`[["ps", "worker"], ["ps"]]`), lists without quotes as in
`docs/design/bucket.md` of Volcano (`[[ps, worker], [ps]]`), and that of Volcano's annotations (`ps,worker;ps`).
"""

import re

TaskGroups = tuple[tuple[str, ...], ...]
"""Groups of task names."""

_EXPECTED = "expected lists of task names, such as [[ps, worker], [ps]] or ps,worker;ps"
_TOKEN = re.compile(r"""\s*([\[\],]|"[^"]*"|'[^']*'|[^\s\[\],"']+)\s*""")


def read_groups(text: str) -> TaskGroups:
    """Read groups of tasks; one plain list is one group, empty groups are left out.

    Raises:
        ValueError: The text has none of the spellings, or a group has a task twice; the message says what was expected.
    """
    if text.lstrip().startswith("["):
        groups = _bracketed(text)
    else:
        groups = [[name.strip() for name in group.split(",")] for group in text.split(";")]
    named = (tuple(name for name in group if name) for group in groups)
    return tuple(_without_repetition(group) for group in named if group)


def read_order(text: str) -> tuple[str, ...]:
    """Read one list of tasks: `ps,worker` or `[ps, worker]`.

    Raises:
        ValueError: The text is neither, or has more than one list.
    """
    groups = read_groups(text)
    if len(groups) > 1:
        raise ValueError("expected one list of task names, such as ps,worker")
    return groups[0] if groups else ()


def format_groups(groups: TaskGroups) -> str:
    """Write groups in the form of the scheduler's annotations: `ps,worker;ps`."""
    return ";".join(",".join(group) for group in groups)


def _without_repetition(group: tuple[str, ...]) -> tuple[str, ...]:
    for name in group:
        if group.count(name) > 1:
            raise ValueError(f'expected a task at most once in a group, found "{name}" twice')
    return group


def _bracketed(text: str) -> list[list[str]]:
    """Read `[a, b]` or `[[a, b], [c]]`, names with or without quotes."""
    tokens = _tokens(text)
    if tokens[:1] != ["["] or tokens[-1:] != ["]"]:
        raise ValueError(_EXPECTED)
    body = tokens[1:-1]
    if "[" not in body and "]" not in body:
        return [_names(body)]
    groups: list[list[str]] = []
    while body:
        if body[0] != "[" or "]" not in body:
            raise ValueError(_EXPECTED)
        end = body.index("]")
        groups.append(_names(body[1:end]))
        separator, body = body[end + 1 : end + 2], body[end + 2 :]
        if separator not in ([], [","]) or (separator and not body):
            raise ValueError(_EXPECTED)
    return groups


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(_EXPECTED)
        tokens.append(match[1])
        position = match.end()
    return tokens


def _names(tokens: list[str]) -> list[str]:
    """Names in the inside of a list: name, comma, name."""
    if not tokens:
        return []
    names, commas = tokens[::2], tokens[1::2]
    if len(names) != len(commas) + 1 or set(commas) - {","} or set(names) & {",", "["}:
        raise ValueError(_EXPECTED)
    return [name.strip("\"'") for name in names]
