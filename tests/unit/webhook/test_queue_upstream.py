"""With `strict-upstream` the tree of queues is judged as Volcano judges it, but for updates that make nothing worse.

Volcano's checks are written down here once more, without any wit: in their order, on the queues as they are stored,
the first problem ends it. Walks that would never end there find nothing.
"""

from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pumice.api.quantities import parse_milli
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue
from tests.unit.webhook.reviewing import answer, request, reraise
from tests.unit.webhook.test_queue_properties import AMOUNTS, ROOTS, TRIPLES, Tree, in_order, made

Raw = dict[str, Any]

PATH = "/queues/validate"
DEPTH = 3
SETTINGS = AdmissionSettings(max_queue_depth=DEPTH, strict_upstream=True)
COMPARED = ("cpu", "nvidia.com/gpu")
"""Of the resources in these trees those that Volcano looks at."""
TOP = ("", "root")
NAMES = st.sampled_from(["a", "b", "c", "d"])
PARENTS = st.sampled_from(["", "root", "a", "b", "c"])
QUEUES = st.one_of(
    st.builds(in_order, NAMES, PARENTS, TRIPLES),
    st.builds(made, NAMES, PARENTS, AMOUNTS, st.just({}), st.just({})),
    st.builds(in_order, NAMES, PARENTS, st.just({})),
)
TREES = st.lists(st.one_of(QUEUES, QUEUES, QUEUES, ROOTS), max_size=6).map(
    lambda found: {"root": queue("root")} | {each["metadata"]["name"]: each for each in found}
)
RING: Tree = {"root": queue("root"), "a": queue("a", parent="b"), "b": queue("b", parent="a")}
CHAIN: Tree = {
    "root": queue("root", capability={"cpu": 3}),
    "a": queue("a"),
    "b": queue("b", parent="a", capability={"cpu": 2}),
    "c": queue("c", parent="b"),
    "d": queue("d", capability={"cpu": 0, "count/jobs.batch": 1}),
    "e": queue("e", capability={"cpu": 1}),
}


def parent(found: Raw) -> str:
    return str(found["spec"].get("parent", ""))


def amounts(found: Raw, field: str) -> dict[str, int]:
    part = found["spec"].get(field, {})
    part = part.get("resource", {}) if field == "guarantee" else part
    return {resource: parse_milli(value) for resource, value in part.items()}


def below(tree: Tree, name: str) -> list[str]:
    return [each for each in tree if parent(tree[each]) == name]


def in_disorder(new: Raw) -> bool:
    deserved, capability = amounts(new, "deserved"), amounts(new, "capability")
    guarantee = amounts(new, "guarantee")
    return any(
        resource not in deserved or amount > deserved[resource]
        for resource, amount in guarantee.items()
    ) or any(amount > capability.get(resource, amount) for resource, amount in deserved.items())


def badly_placed(tree: Tree, name: str, above: str) -> bool:
    if above in TOP:
        return False
    level, here = 1, above
    while here not in TOP:
        level += 1
        if level > DEPTH or here not in tree:
            return True
        here = parent(tree[here])
    return above == name


def effective(tree: Tree, name: str, resource: str, seen: tuple[str, ...]) -> int:
    """The largest capability of a queue and of those below it that have none above them."""
    if name in seen:
        return 0
    own = amounts(tree[name], "capability").get(resource, 0)
    return own or max(
        (effective(tree, each, resource, (*seen, name)) for each in below(tree, name)), default=0
    )


def limits_above(tree: Tree, name: str, resource: str) -> Iterator[int]:
    seen: set[str] = set()
    while name not in TOP and name in tree and name not in seen:
        seen.add(name)
        if limit := amounts(tree[name], "capability").get(resource, 0):
            yield limit
        name = parent(tree[name])


def too_much(tree: Tree, new: Raw) -> bool:
    name, above = new["metadata"]["name"], parent(new)
    children = [each for each in below(tree, name) if each != name]
    for resource in COMPARED:
        own = amounts(new, "capability").get(resource, 0)
        if above not in TOP and own > next(limits_above(tree, above, resource), own):
            return True
        largest = max((effective(tree, each, resource, (name,)) for each in children), default=0)
        if own and largest > own:
            return True
    return any(
        sums_over(tree, tree[above], [*below(tree, above), name], new, field)
        for field in ("guarantee", "deserved")
        if above not in TOP and above in tree
    ) or any(sums_over(tree, new, children, new, field) for field in ("guarantee", "deserved"))


def sums_over(tree: Tree, limiting: Raw, names: list[str], new: Raw, field: str) -> bool:
    whole = tree | {new["metadata"]["name"]: new}
    return any(
        sum(amounts(whole[each], field).get(resource, 0) for each in set(names))
        > amounts(limiting, field).get(resource, 0)
        for resource in COMPARED
    )


def asked(tree: Tree, new: Raw, old: Raw | None) -> bool:
    admission = Admission(SETTINGS, Snapshot.of(tree.values()), builtin(), on_crash=reraise)
    asking = request(PATH, new, "UPDATE" if old else "CREATE", old)
    return bool(answer(admission, PATH, asking)["allowed"])


@given(TREES, QUEUES)
@example(CHAIN, queue("a", parent="b"))
@example(CHAIN, queue("a", parent="d"))
@example(CHAIN, queue("a", parent="e"))
@example(CHAIN, queue("d", capability={"cpu": 4}))
@example(CHAIN, queue("f", parent="d", capability={"cpu": 1, "count/jobs.batch": 2}))
@example(CHAIN, queue("root", parent="a", capability={"cpu": 3}))
def test_what_volcano_admits_is_admitted(tree: Tree, new: Raw) -> None:
    old = tree.get(new["metadata"]["name"])
    moved = old is None or parent(old) != parent(new)
    if in_disorder(new) or (moved and badly_placed(tree, new["metadata"]["name"], parent(new))):
        return
    assert too_much(tree, new) or asked(tree, new, old)


@given(TREES, QUEUES)
@example(RING, queue("c", parent="a"))
@example({"root": queue("root"), "a": queue("a", parent="b")}, queue("b", parent="a"))
def test_no_queue_is_made_that_volcano_refuses_for_itself_or_for_its_place(
    tree: Tree, new: Raw
) -> None:
    name = new["metadata"]["name"]
    tree = {each: found for each, found in tree.items() if each != name}
    if in_disorder(new) or badly_placed(tree, name, parent(new)):
        assert not asked(tree, new, None)
