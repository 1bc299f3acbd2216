"""Rules of a job about its tasks: read from annotations, checked, and queried in pairs.

Three annotations of Volcano (groups separated by `;`, tasks by `,`), or the single one with JSON
of `docs/design/bucket.md` of Volcano.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pumice.api import keys
from pumice.api.task_lists import TaskGroups, read_groups, read_order

LONGEST = 16 * 1024
"""Characters of an annotation that is read."""

MOST_TASKS = 200
"""Tasks that rules may name: they are compared pair by pair."""

SELF_ANTI, INTER, SELF, INTER_ANTI, NONE = 4, 3, 2, 1, 0
"""Types of a task, the strongest first: pods of a task that repels itself open the most buckets."""


class TopologyError(ValueError):
    """Annotations that are invalid for the job."""


class TopologyRules(msgspec.Struct, frozen=True):
    """Affinities between tasks.

    Attributes:
        affinity: TaskGroups whose pods belong together; a single task belongs with itself.
        anti_affinity: TaskGroups whose pods belong apart.
        order: Tasks in the order in which they are placed.
    """

    affinity: TaskGroups = ()
    anti_affinity: TaskGroups = ()
    order: tuple[str, ...] = ()

    @property
    def tasks(self) -> set[str]:
        """All tasks that are named."""
        groups = (*self.affinity, *self.anti_affinity, self.order)
        return {name for group in groups for name in group if name}

    def types(self) -> dict[str, int]:
        """The strongest type of each task that has one."""
        types: dict[str, int] = {}
        for groups, alone, together in (
            (self.affinity, SELF, INTER),
            (self.anti_affinity, SELF_ANTI, INTER_ANTI),
        ):
            for group in groups:
                for task in group:
                    found = alone if len(group) == 1 else together
                    types[task] = max(types.get(task, NONE), found)
        return types

    def conflicts(self) -> set[str]:
        """Tasks of which a pair is wanted both together and apart."""
        both = _pairs(self.affinity) & _pairs(self.anti_affinity)
        return {task for pair in both for task in pair}

    def attraction(self) -> "TopologyPairs":
        """How tasks attract and repel each other."""
        return TopologyPairs(_pairs(self.affinity), _pairs(self.anti_affinity))


class TopologyPairs(msgspec.Struct, frozen=True):
    """Pairs that belong together and pairs that belong apart."""

    together: set[tuple[str, str]]
    apart: set[tuple[str, str]]

    def of(self, task: str, others: Mapping[str, int]) -> int:
        """How strongly a task is drawn to pods of these tasks; negative when it is repelled."""
        return sum(
            count * (((task, other) in self.together) - ((task, other) in self.apart))
            for other, count in others.items()
        )

    def repulsion(self, task: str, others: Mapping[str, int]) -> int:
        """How many of these pods a task should not share a node with."""
        return sum(count for other, count in others.items() if (task, other) in self.apart)


def read_rules(annotations: Mapping[str, str], job: str) -> TopologyRules | None:
    """Read the rules of a job from annotations of its PodGroup; None when it has none.

    Raises:
        TopologyError: The JSON cannot be read, an annotation is too long, or too many tasks are named.
    """
    if annotations.keys().isdisjoint(_ANNOTATIONS):
        return None
    for key in _ANNOTATIONS:
        if (length := len(annotations.get(key, ""))) > LONGEST:
            raise TopologyError(
                f"annotation {key} must have at most {LONGEST} characters, found {length}"
            )
    rules = _from_volcano(annotations) or _from_json(annotations, job)
    if rules is not None and (count := len(rules.tasks)) > MOST_TASKS:
        raise TopologyError(f"job <{job}> must name at most {MOST_TASKS} tasks, found {count}")
    return rules


_ANNOTATIONS = (
    keys.TOPOLOGY_AFFINITY,
    keys.TOPOLOGY_ANTI_AFFINITY,
    keys.TOPOLOGY_TASK_ORDER,
    keys.TOPOLOGY_JSON,
)


def check_rules(rules: TopologyRules, known: Collection[str], job: str) -> None:
    """Check that the tasks that the rules name exist.

    Raises:
        TopologyError: A task does not exist or is named twice in a group.
    """
    for group in (*rules.affinity, *rules.anti_affinity, rules.order):
        _check(group, known, job)


def _from_volcano(annotations: Mapping[str, str]) -> TopologyRules | None:
    affinity = annotations.get(keys.TOPOLOGY_AFFINITY, "")
    anti_affinity = annotations.get(keys.TOPOLOGY_ANTI_AFFINITY, "")
    order = annotations.get(keys.TOPOLOGY_TASK_ORDER, "")
    if not (affinity or anti_affinity or order):
        return None
    return TopologyRules(_split(affinity), _split(anti_affinity), _names(order) if order else ())


def _split(text: str) -> TaskGroups:
    return tuple(_names(group) for group in text.split(";")) if text else ()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _from_json(annotations: Mapping[str, str], job: str) -> TopologyRules | None:
    text = annotations.get(keys.TOPOLOGY_JSON, "")
    if not text:
        return None
    try:
        document = json.loads(text)
        given = _pairs_of_arguments(document) if isinstance(document, list) else document
        if not isinstance(given, dict):
            raise ValueError("expected an object or a list of arguments")
        by_name = {_plain(name): value for name, value in given.items()}
        return TopologyRules(
            _json_groups(by_name.get("affinity")),
            _json_groups(by_name.get("antiaffinity")),
            _json_order(by_name.get("taskorder")),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise TopologyError(
            f"annotation {keys.TOPOLOGY_JSON} of job <{job}> cannot be read: {error}; expected for "
            'example {"affinity": [["ps", "worker"]], "antiAffinity": [["ps"]]}'
        ) from error


def _pairs_of_arguments(words: Sequence[object]) -> dict[str, object]:
    """`["--affinity", "[[ps, worker]]", …]`, as the plugin's arguments are written in a Job."""
    if len(words) % 2:
        raise ValueError("expected a value after each argument")
    return {str(words[place]): words[place + 1] for place in range(0, len(words), 2)}


def _plain(name: object) -> str:
    return str(name).replace("-", "").lower()


def _json_groups(value: object) -> TaskGroups:
    if value is None:
        return ()
    if isinstance(value, str):
        return read_groups(value)
    if not isinstance(value, list):
        raise TypeError(f"expected lists of tasks, found {value!r}")
    if value and all(isinstance(name, str) for name in value):
        return (tuple(value),)
    return tuple(tuple(str(name) for name in group) for group in value)


def _json_order(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return read_order(value)
    groups = _json_groups(value)
    return groups[0] if groups else ()


def _check(group: Iterable[str], known: Collection[str], job: str) -> None:
    seen: set[str] = set()
    for name in group:
        if not name:
            continue
        if name not in known:
            raise TopologyError(f"task {name} do not exist in job <{job}>")
        if name in seen:
            raise TopologyError(f"task {name} is duplicate in job <{job}>")
        seen.add(name)


def _pairs(groups: TaskGroups) -> set[tuple[str, str]]:
    pairs = set()
    for group in groups:
        if len(group) == 1:
            pairs.add((group[0], group[0]))
        else:
            pairs.update((one, other) for one in group for other in group if one != other)
    return pairs
