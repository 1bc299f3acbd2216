"""Rows of the page stay the same objects until what they say has changed."""

from typing import Any

import msgspec

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.cli.live.web_rows import NodeRows
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects, Simulation
from tests.kit.builders import node, pod, pod_group


def _pod(name: str, group: str, on: str) -> Pod:
    raw = pod(name, group=group, cpu="1", node=on, phase="Running")
    return msgspec.convert(raw | {"metadata": raw["metadata"] | {"uid": name}}, Pod)


def test_only_nodes_that_have_changed_get_a_new_row() -> None:
    nodes = msgspec.convert([node("a", "4"), node("b", "4")], list[Node])
    first = _pod("first", "g", "a")
    groups = msgspec.convert([pod_group("g", 1), pod_group("h", 1)], list[PodGroup])
    objects = ClusterObjects(nodes=nodes, pods=[first], pod_groups=groups)
    simulation = Simulation(objects, load_config(None))
    rows = NodeRows()

    def shown(*usable: bool) -> tuple[list[str], list[dict[str, Any]]]:
        simulation.state.settle(0.0)
        return rows.of(simulation.state, dict(zip("ab", usable, strict=True)))

    rows.note(None)
    gangs, before = shown(True, True)
    assert (gangs, [each["free"]["cpu"] for each in before]) == (["default/g"], ["3", "4"])
    other = _pod("other", "h", "a")
    for old, new in ((first, None), (None, other)):
        simulation.replace(old, new)
        rows.note([(old, new)])
    gangs, after = shown(True, True)
    assert (gangs, after[0]["pods"]) == (
        ["default/h"],
        [{"pod": "default/other", "gang": "default/h"}],
    )
    assert after[1] is before[1]
    _, last = shown(True, False)
    assert last[0] is after[0]
    assert last[1]["usable"] is False
    rows.note(None)
    assert shown(True, False)[1][0] is not last[0]
