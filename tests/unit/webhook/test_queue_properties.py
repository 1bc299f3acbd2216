"""What holds for every tree of queues, however odd."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pumice.api.quantities import parse_milli
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue
from tests.unit.webhook.reviewing import answer, request, reraise
from tests.unit.webhook.shapes import JSON

Raw = dict[str, Any]
Tree = dict[str, Raw]

PATH = "/queues/validate"
SETTINGS = AdmissionSettings(max_queue_depth=2, enable_root_queue_protection=False)
NAMES = ["a", "b", "c", "d", "e"]
RESOURCES = ["cpu", "nvidia.com/gpu", "count/jobs.batch"]
TOO_MUCH = {
    "Q-CAP-GT-ANCESTOR", "Q-CAP-LT-DESC", "Q-CAP-DESC-GT-ANCESTOR", "Q-CAP-BELOW-ZERO", "Q-SIB-GUAR",
    "Q-SIB-DES", "Q-CHILD-GUAR", "Q-CHILD-DES", "Q-ROOT-LIMIT", "Q-TREE-OTHER", "Q-GUAR-GT-DESERVED",
    "Q-GUAR-NO-DESERVED", "Q-DES-GT-CAP", "Q-DEPTH", "Q-DEPTH-BELOW",
}  # fmt: skip

AMOUNTS = st.dictionaries(
    st.sampled_from(RESOURCES), st.sampled_from([0, 1, 2, "3", "2000m", 5]), max_size=3
)


def made(name: str, parent: str, capability: Raw, deserved: Raw, guarantee: Raw) -> Raw:
    fields: Raw = {
        "capability": capability,
        "deserved": deserved,
        "guarantee": {"resource": guarantee},
        "parent": parent,
    }
    return queue(name, **{key: value for key, value in fields.items() if value})


def in_order(name: str, parent: str, triples: dict[str, tuple[int, int, int]]) -> Raw:
    """A queue that is well for itself, so that trees can grow."""
    ordered = {resource: sorted(each) for resource, each in triples.items()}
    guarantee, deserved, capability = (
        {resource: each[index] for resource, each in ordered.items()} for index in range(3)
    )
    return made(name, parent, capability, deserved, guarantee)


PARENTS = st.sampled_from(["", "root", *NAMES, "gone"])
TRIPLES = st.dictionaries(
    st.sampled_from(RESOURCES), st.tuples(*[st.integers(0, 6)] * 3), max_size=2
)
QUEUES = st.one_of(
    st.builds(made, st.sampled_from(NAMES), PARENTS, AMOUNTS, AMOUNTS, AMOUNTS),
    st.builds(in_order, st.sampled_from(NAMES), PARENTS, TRIPLES),
    st.builds(in_order, st.sampled_from(NAMES), PARENTS, st.just({})),
    st.builds(made, st.sampled_from(NAMES), PARENTS, AMOUNTS, st.just({}), st.just({})),
)
ROOTS = st.builds(made, st.just("root"), st.just(""), AMOUNTS, AMOUNTS, AMOUNTS)
TREES = st.lists(st.one_of(QUEUES, ROOTS), max_size=7).map(
    lambda found: {"root": queue("root")} | {each["metadata"]["name"]: each for each in found}
)
OPERATIONS = st.lists(st.one_of(QUEUES, QUEUES, QUEUES, ROOTS, st.sampled_from(NAMES)), max_size=12)

LISTS = st.lists(st.sampled_from(["a", "b", "", "no name", "x" * 64]), max_size=3)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": LISTS,
        "preferredDuringSchedulingIgnoredDuringExecution": LISTS,
    },
)
QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "nvdia.com/gpu", "", "x y", "pods"]),
    st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=4), st.sampled_from(["1e30", "-1"])),
    max_size=3,
)
CLUSTERS = st.fixed_dictionaries(
    {}, optional={"name": st.text(max_size=2), "weight": st.integers(), "capacity": QUANTITIES}
)
SHAPES = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b", "root", "default", ""])},
            optional={
                "annotations": st.dictionaries(
                    st.sampled_from(
                        [
                            "volcano.sh/hierarchy",
                            "volcano.sh/hierarchy-weights",
                            "volcano.sh/nodegroup-resource-limits",
                        ]
                    ),
                    st.one_of(
                        st.text(max_size=6),
                        JSON.map(json.dumps),
                        st.dictionaries(st.sampled_from(["a", ""]), QUANTITIES).map(json.dumps),
                    ),
                )
            },
        )
    },
    optional={
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "weight": st.integers(),
                "priority": st.integers(),
                "parent": st.sampled_from(["", "a", "b", "root", "default"]),
                "dequeueStrategy": st.text(max_size=8),
                "capability": QUANTITIES,
                "deserved": QUANTITIES,
                "guarantee": st.fixed_dictionaries({"resource": QUANTITIES}),
                "extendClusters": st.lists(CLUSTERS, max_size=3),
                "affinity": st.fixed_dictionaries(
                    {}, optional={"nodeGroupAffinity": TERMS, "nodeGroupAntiAffinity": TERMS}
                ),
            },
        ),
        "status": st.fixed_dictionaries(
            {},
            optional={
                "state": st.sampled_from(["Open", "Closed", "Closing", "wrong"]),
                "pending": st.integers(),
                "allocated": QUANTITIES,
            },
        ),
    },
)
"""Queues whose fields have the right types and any values."""


def asked(tree: Tree, obj: Raw | None, operation: str, old: Raw | None = None) -> Raw:
    admission = Admission(SETTINGS, Snapshot.of(tree.values()), builtin(), on_crash=reraise)
    return answer(admission, PATH, request(PATH, obj, operation, old))


def codes(response: Raw) -> list[str]:
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    return [each["message"].rpartition("[")[2].rstrip("]") for each in causes]


def apply(tree: Tree, new: Raw) -> Raw:
    """Ask for a queue to be made or changed, and do it when it is admitted."""
    name = new["metadata"]["name"]
    old = tree.get(name)
    response = asked(tree, new, "UPDATE" if old else "CREATE", old)
    if response["allowed"]:
        tree[name] = new
    return response


def amounts(tree: Tree, name: str, field: str) -> dict[str, int]:
    spec = tree[name]["spec"]
    found = (
        spec.get("guarantee", {}).get("resource", {})
        if field == "guarantee"
        else spec.get(field, {})
    )
    return {resource: parse_milli(value) for resource, value in found.items()}


def above(tree: Tree, name: str) -> list[str]:
    """Every queue above, root last; fails where the way is broken or goes in a circle."""
    found: list[str] = []
    while name != "root":
        name = tree[name]["spec"].get("parent", "") or "root"
        assert name not in found
        found.append(name)
    return found


def violations(tree: Tree) -> Iterator[str]:
    """Everything that a tree may not be, computed without any wit."""
    for name in tree:
        ways = above(tree, name)
        if len(ways) > SETTINGS.max_queue_depth:
            yield f"{name} is too deep"
        capability = amounts(tree, name, "capability")
        for resource, amount in capability.items():
            for each in ways:
                if amount > amounts(tree, each, "capability").get(resource, amount):
                    yield f"{name} has more {resource} than {each}"
        yield from _in_disorder(tree, name)
        yield from _sums(tree, name)


def _in_disorder(tree: Tree, name: str) -> Iterator[str]:
    deserved, capability = amounts(tree, name, "deserved"), amounts(tree, name, "capability")
    for resource, amount in amounts(tree, name, "guarantee").items():
        if resource not in deserved or amount > deserved[resource]:
            yield f"{name} does not deserve its guarantee of {resource}"
    for resource, amount in deserved.items():
        if amount > capability.get(resource, amount):
            yield f"{name} deserves more {resource} than it may use"


def _sums(tree: Tree, name: str) -> Iterator[str]:
    children = [each for each in tree if each != "root" and above(tree, each)[0] == name]
    for field in ("guarantee", "deserved"):
        own = amounts(tree, name, field)
        for resource in RESOURCES:
            total = sum(amounts(tree, each, field).get(resource, 0) for each in children)
            limit = own.get(resource, total if name == "root" else 0)
            if total > limit:
                yield f"children of {name} have {total} {field} of {resource}, not {limit}"


@given(OPERATIONS)
def test_a_tree_that_was_admitted_step_by_step_keeps_all_rules(operations: list[Raw | str]) -> None:
    tree: Tree = {"root": queue("root")}
    for operation in operations:
        if isinstance(operation, str):
            response = asked(tree, None, "DELETE", tree.get(operation))
            if operation in tree and response["allowed"]:
                del tree[operation]
        else:
            apply(tree, operation)
        assert list(violations(tree)) == []


@given(OPERATIONS)
def test_what_would_break_no_rule_is_admitted(operations: list[Raw | str]) -> None:
    tree: Tree = {"root": queue("root")}
    for operation in operations:
        if isinstance(operation, str):
            continue
        before = copy.deepcopy(tree)
        response = apply(tree, operation)
        if response["allowed"]:
            continue
        name = operation["metadata"]["name"]
        wanted = before | {name: operation}
        try:
            broken = list(violations(wanted))
        except (AssertionError, KeyError):
            continue  # no way up to root
        from_root = "Q-ROOT-LIMIT" in codes(response)  # capability of root limits shares as well
        assert broken or from_root or "Q-ROOT-PARENT" in codes(response)


@given(SHAPES, SHAPES, SHAPES, st.sampled_from(["CREATE", "UPDATE", "DELETE"]))
def test_no_rule_raises_on_any_queue(new: Raw, old: Raw, other: Raw, operation: str) -> None:
    others = {
        str(index): {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"} | each
        for index, each in enumerate([old, other])
    }
    asked(others, new, operation, None if operation == "CREATE" else old)
    assert asked(others, new, "UPDATE", new)["allowed"]


@given(TREES, QUEUES)
def test_any_tree_is_judged_to_its_end(tree: Tree, new: Raw) -> None:
    apply(tree, new)


@given(TREES, QUEUES, st.data())
def test_a_leaf_that_only_shrinks_is_never_told_that_it_has_too_much(
    tree: Tree, leaf: Raw, data: st.DataObject
) -> None:
    name = leaf["metadata"]["name"]
    tree = {each: found for each, found in tree.items() if found["spec"].get("parent") != name} | {
        name: leaf
    }
    spec = leaf["spec"]
    shrunk = copy.deepcopy(leaf)
    resource = data.draw(st.sampled_from(RESOURCES))
    for found in (
        shrunk["spec"].get("guarantee", {}).get("resource", {}),
        shrunk["spec"].get("deserved", {}),
        shrunk["spec"].get("capability", {}),
    ):
        if resource in found:
            found[resource] = f"{parse_milli(found[resource]) // 2}m"
    assert spec == leaf["spec"]
    found_codes = codes(asked(tree, shrunk, "UPDATE", leaf))
    assert not TOO_MUCH.intersection(found_codes), found_codes


@given(TREES, QUEUES, st.integers(2, 9))
def test_a_change_of_weight_is_never_told_of_the_tree(tree: Tree, old: Raw, weight: int) -> None:
    new = copy.deepcopy(old)
    new["spec"]["weight"] = weight
    assert asked(tree | {old["metadata"]["name"]: old}, new, "UPDATE", old)["allowed"]


@given(TREES, QUEUES, QUEUES)
def test_an_update_is_never_told_more_than_a_new_queue(tree: Tree, old: Raw, new: Raw) -> None:
    new = copy.deepcopy(new) | {"metadata": old["metadata"]}
    updated = asked(tree | {old["metadata"]["name"]: old}, new, "UPDATE", old)
    created = asked(tree | {old["metadata"]["name"]: old}, new, "CREATE")
    assert set(codes(updated)) <= set(codes(created))


@given(TREES, QUEUES, st.randoms(use_true_random=False))
def test_the_order_of_queues_does_not_matter(tree: Tree, new: Raw, random: Any) -> None:
    shuffled = list(tree.items())
    random.shuffle(shuffled)
    name = new["metadata"]["name"]
    old = tree.get(name)
    operation = "UPDATE" if old else "CREATE"
    assert asked(tree, new, operation, old) == asked(dict(shuffled), new, operation, old)
