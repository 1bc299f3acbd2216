"""Linting many queues: each is checked against all others, at a cost in proportion to their number."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cli.files.checking import ManifestChecker, admission, placed
from pumice.cli.files.manifests import Manifest, Source
from pumice.webhook.offline import judge
from pumice.webhook.rules.resource_groups import NO_GROUPS
from pumice.webhook.rules.rule import RuleSettings
from tests.kit.builders import pod_group, queue
from tests.kit.counting import calls
from tests.unit.webhook.test_queue_properties import QUEUES, ROOTS

Raw = dict[str, Any]

FEW = 100
GROWTH = 1.1
"""Times the calls for the third hundred; what looks at each beside each takes up to 1.67 times those for the second."""


def tree(count: int) -> list[Raw]:
    """Three levels: the upper ones deserve what those below them deserve together."""
    leaves = [
        queue(
            f"d{number % 4}-t{number % 8}-p{number}",
            parent=f"d{number % 4}-t{number % 8}",
            **AMOUNTS,
        )
        for number in range(count)
    ]
    upper = [
        queue(f"d{number}", deserved={"cpu": count}, capability={"cpu": 9 * count})
        for number in range(4)
    ]
    middle = [
        queue(f"d{number % 4}-t{number}", parent=f"d{number % 4}", deserved={"cpu": count // 2})
        for number in range(8)
    ]  # fmt: skip
    return [*upper, *middle, *leaves]


AMOUNTS: Raw = {"deserved": {"cpu": "2"}, "guarantee": {"resource": {"cpu": "1"}}}


def wide(count: int) -> list[Raw]:
    """All below one queue, which deserves as much as they do."""
    return [
        queue("p", deserved={"cpu": 2 * count}, guarantee={"resource": {"cpu": count}}),
        *(queue(f"l{number}", parent="p", **AMOUNTS) for number in range(count)),
    ]


def too_much(count: int) -> list[Raw]:
    """All below root and a limit that they exceed together; each has its problem."""
    return [
        queue("root", capability={"cpu": 1}),
        *(queue(f"l{number}", deserved={"cpu": number % 7}) for number in range(count)),
    ]


def annotated(count: int) -> list[Raw]:
    """All with a path, half of them below the path of another one."""
    return [
        queue(
            f"l{number}",
            annotations={
                "volcano.sh/hierarchy": f"root/a{number // 2}{'/x' * (number % 2)}",
                "volcano.sh/hierarchy-weights": f"1/2{'/3' * (number % 2)}",
            },
        )
        for number in range(count)
    ]


def busy(count: int) -> list[Raw]:
    """Each is the parent of a queue, and has a PodGroup of its own."""
    pairs = [
        (queue(f"q{number}"), queue(f"l{number}", parent=f"q{number}")) for number in range(count)
    ]
    groups = [pod_group(f"g{number}", queue=f"q{number}") for number in range(count)]
    return [*(each for pair in pairs for each in pair), *groups]


def manifests_of(objects: list[Raw], file: str) -> list[Manifest]:
    return [Manifest(each, Source(file, place)) for place, each in enumerate(objects, 1)]


@pytest.mark.parametrize("shape", [tree, wide, too_much, annotated, busy])
@pytest.mark.parametrize("is_stored", [False, True])
def test_each_further_queue_takes_as_many_calls(
    shape: Callable[[int], list[Raw]], *, is_stored: bool
) -> None:
    """New queues, and updates of stored ones."""

    def lint(count: int) -> int:
        manifests = manifests_of(shape(count), "f")
        old = [
            {**each, "spec": {**each["spec"], "weight": 7}}
            for each in shape(count)
            if each["kind"] == "Queue"
        ]
        state = manifests_of(old if is_stored else [], "s")

        def check() -> None:
            checker = ManifestChecker(RuleSettings(), state, manifests)
            for each in manifests:
                checker.judge(each)

        return calls(check)

    lint(FEW)  # and everything is imported
    one, two, three = (lint(times * FEW) for times in (1, 2, 3))
    assert three - two < GROWTH * (two - one)


HIERARCHY = st.sampled_from(["root/a", "root/a/b", "root/a/b/c", "root/b", "/", "a/", "root/a/"])


def with_path(manifest: Raw, path: str) -> Raw:
    metadata = {**manifest["metadata"], "annotations": {"volcano.sh/hierarchy": path}}
    return {**manifest, "metadata": metadata}


MANIFESTS = st.one_of(QUEUES, QUEUES, ROOTS, st.builds(with_path, QUEUES, HIERARCHY))


@given(st.lists(MANIFESTS, max_size=6), st.lists(MANIFESTS, max_size=4))
def test_each_queue_is_checked_as_over_all_others(checked: list[Raw], stored: list[Raw]) -> None:
    """The reference makes a view of its own for each queue, from all objects without it."""
    manifests, state = manifests_of(checked, "f"), manifests_of(stored, "s")
    checker = ManifestChecker(RuleSettings(), state, manifests)
    existing = {each.identity: placed(each) for each in state}
    others = {each.identity: placed(each) for each in manifests}
    for each in manifests:
        seen = existing | {key: other for key, other in others.items() if key != each.identity}
        rules = admission(seen.values(), RuleSettings(), NO_GROUPS)
        old = existing.get(each.identity)
        expected = judge(rules, placed(each), "UPDATE" if old else "CREATE", old)
        assert checker.judge(each) == expected
