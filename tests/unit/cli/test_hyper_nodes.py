"""`pumice explain hypernodes`: the tree of files, and what is said where something may not be read."""

from typing import Any

import msgspec

from pumice.api.hypernodes import HyperNode
from pumice.api.nodes import Node
from pumice.cli.live.explanation_text import text_of
from pumice.cli.live.hyper_nodes import of_hyper_nodes
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects, Simulation
from tests.kit.builders import node, pod
from tests.unit.cli.conftest import Pumice, texts
from tests.unit.scheduler.network_trees import hyper_node

RACKS = (
    hyper_node("r0", nodes=["n0", "n1"], tierName="rack"),
    hyper_node("r1", nodes=["n2"]),
    hyper_node("spine", tier=2, below=["r0", "r1"]),
)


def explained(pumice: Pumice, *words: str, objects: tuple[Any, ...]) -> Any:
    ran = pumice("explain", *words, "--state", "-", "-o", "json", stdin=texts(*objects))
    assert ran.code == 0, ran.err
    assert ran.err == ""
    return ran.json


def test_what_is_free_in_each_domain(pumice: Pumice) -> None:
    nodes = [node(f"n{index}", "4") for index in range(5)]
    running = pod("p", node="n0", cpu="3")
    over = pod("q", node="n1", cpu="5")  # more than the node has
    found = explained(pumice, "hypernodes", objects=(*nodes, *RACKS, running, over))
    free = {each["name"]: each["free"]["cpu"] for each in found["hyperNodes"]}
    assert free == {"spine": "5", "r0": "1", "r1": "4"}
    assert [each["nodes"] for each in found["hyperNodes"]] == [3, 2, 1]
    assert found["cluster"]["free"]["cpu"] == "13"
    assert found["cluster"]["parent"] is None
    assert found["outside"] == ["n3", "n4"]
    assert found["message"] == "3 HyperNodes of 2 tiers; 2 nodes in none of them: n3, n4"


def test_a_part_of_the_tree(pumice: Pumice) -> None:
    bad = hyper_node("x", below=["x"])
    found = explained(pumice, "hn", "r0", objects=(node("n0", "4"), *RACKS, bad))
    assert found["message"] == 'HyperNode r0 is of tier 1 "rack", in spine'
    assert [each["name"] for each in found["hyperNodes"]] == ["r0"]
    assert (found["cluster"], found["outside"], found["faults"]) == (None, [], [])
    whole = explained(pumice, "hypernodes", objects=(node("n0", "4"), *RACKS, bad))
    assert whole["faults"] == [{"hyperNode": "x", "message": "x is a member of itself"}]


def test_no_hyper_nodes(pumice: Pumice) -> None:
    ran = pumice("explain", "hypernodes", "--state", "-", stdin=texts(node("n0", "4")))
    assert ran.out == "There are no HyperNodes\n"


def test_every_node_in_one(pumice: Pumice) -> None:
    found = explained(pumice, "hypernodes", objects=(node("n2", "4"), *RACKS[1:2]))
    assert found["message"] == "1 HyperNode of 1 tier; every ready node is in one"


def test_without_the_right_to_read_pods_it_is_not_said_what_is_free() -> None:
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n0", "4")], list[Node]),
        hyper_nodes=msgspec.convert(list(RACKS), list[HyperNode]),
    )
    simulation = Simulation(objects, load_config(None))
    found = of_hyper_nodes(simulation, "", ["pods of all namespaces"])
    assert {each["free"] is None for each in found["hyperNodes"]} == {True}
    text = text_of(found)
    assert "Not allowed to read: pods of all namespaces." in text
    (line,) = (each for each in text.splitlines() if "r0" in each)
    assert line.split() == ["r0", "1", "rack", "1", "4", "8Gi"]


def test_an_amount_that_cannot_be_read(pumice: Pumice) -> None:
    bad = node("n0", "4")
    bad["status"]["allocatable"]["cpu"] = "four"
    ran = pumice("explain", "hypernodes", "--state", "-", stdin=texts(bad))
    assert ran.code == 2
    assert "Node/n0" in ran.err


def test_a_hyper_node_that_does_not_exist(pumice: Pumice) -> None:
    ran = pumice("explain", "hn/x", "--state", "-", stdin=texts(node("n0", "4")))
    assert (ran.code, ran.err) == (2, 'pumice explain: there is no HyperNode "x"\n')
