"""Where gangs go in a network of HyperNodes, on the core and through `pumice simulate`."""

import copy

import msgspec
import pytest

from pumice.api.volumes import PersistentVolume
from pumice.scheduler.options import open_session
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.network_clusters import CASES, DOCUMENT, Cluster, pod
from tests.unit.scheduler.network_trees import hyper_node
from tests.unit.scheduler.scenarios import NOW, Raw, Scenario, case_id, config_text
from tests.unit.scheduler.volume_scenarios import (
    HOST,
    claim,
    node_row,
    pod_volumes,
    storage_classes,
    volume,
)


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_placement(case: Raw) -> None:
    cluster, expect = Cluster(case), case["expect"]
    first = cluster.cycle()
    if "domain" in expect:
        inside = DOCUMENT["trees"]["T8"][expect["domain"]]["nodes"]
        assert set(cluster.nodes()) <= set(inside)
    else:
        nodes = expect.get("nodes") or [""] * len(cluster.nodes())
        assert cluster.nodes() == nodes
    promised = [
        first.pipelined.get(f"ns/{name}", "")
        for kind, name in cluster.manifests
        if kind == "Pod" and name.startswith("pg-")
    ]
    assert promised == expect.get("promised", [""] * len(promised))
    if "reason" in expect:
        assert first.pending["ns/pg"].summary == expect["reason"]
    if expect.get("network", {}).get("hyperNode"):
        (condition,) = cluster.state.jobs["ns/pg"].status.conditions or []
        said = "its pods are in HyperNode {hyperNode} (tier {tier})".format(**expect["network"])
        assert (condition.type, condition.message) == ("Scheduled", said)
    if "phase" in expect:
        assert cluster.state.jobs["ns/pg"].phase == expect["phase"]
    if "about" in expect:
        assert expect["about"] in first.pending["ns/pg"].summary
    before = cluster.nodes()
    if "leaving" not in case:
        for _ in range(5):
            cluster.state.parked.wake_all()
            cluster.state.settled = None
            cluster.cycle()
        assert cluster.nodes() == before


FULL = {f"n{index}": 6 for index in range(8)}


@pytest.mark.parametrize("used", [5, 4])
def test_a_gang_that_no_domain_can_hold_is_not_tried_again(used: int) -> None:
    """One event may wake hundreds of gangs; what domains have free is added up once for all of them."""
    half_full = {f"n{index}": 4 + index % 2 * 2 for index in range(8)}
    cluster = Cluster({"used": half_full, "gang": {"pods": 2, "cpu": 4, "hard": 1}})
    cluster.cycle()
    assert cluster.nodes() == ["", ""]
    cluster.show(pod("used-n7", {"cpu": str(used)}, "n7"))
    cluster.state.settle()
    session = open_session(cluster.state, cluster.config, NOW)
    session.refused._renewed = ()  # gangs that are tried in any case
    assert session.is_refused_as_before(cluster.state.jobs["ns/pg"]) is (used == 5)
    session.close()


@pytest.mark.parametrize(
    ("gang", "enters"),
    [
        ({"pods": 3, "cpu": 5, "hard": 1}, True),
        ({"pods": 3, "cpu": 5, "soft": True}, False),
        ({"pods": 3, "cpu": 5, "parts": {"size": 3, "min": 1, "hard": 1}}, True),
        ({"pods": 3, "cpu": 5, "parts": {"size": 1, "min": 3, "hard": 1}}, False),
        ({"pods": 3, "cpu": 5, "topology": {"highestTierName": "none"}}, True),
    ],
    ids=["gang", "wish", "partition", "small partitions", "unknown tier"],
)
def test_no_room_is_kept_at_the_gate_for_a_gang_that_no_domain_could_hold(
    gang: Raw, enters: bool
) -> None:
    """Until a domain could: 15 cpu are in two nodes of 8, but three pods of 5 are not."""
    full = {f"n{index}": 4 for index in range(8)}
    plugins = ["gang", "predicates", "network-topology-aware", "overcommit"]
    actions = ["enqueue", "allocate"]
    cluster = Cluster({"used": full, "gang": gang, "plugins": plugins, "actions": actions})
    late = copy.deepcopy(cluster.manifests["PodGroup", "pg"])
    late["metadata"]["name"] = "late"
    late["spec"] = {"minMember": 1, "queue": "default", "minResources": {"cpu": "40"}}
    late["status"] = {"phase": "Pending"}
    cluster.show(late)
    cluster.cycle()
    job = cluster.state.jobs["ns/pg"]
    assert job.is_too_large is enters
    assert (cluster.state.jobs["ns/late"].phase == "Inqueue") is enters
    if job.group is not None and job.group.spec.network_topology and "hard" in gang:
        cluster.show(hyper_node("s0", nodes=["n0", "n1", "n2"]))
        cluster.cycle()
        assert not job.is_too_large


def test_a_hyper_node_that_comes_wakes_the_gang_that_waits_for_it() -> None:
    used = FULL | {"n1": 4, "n4": 4}
    cluster = Cluster({"used": used, "gang": {"pods": 2, "cpu": 4, "hard": 1}})
    cluster.cycle()
    assert cluster.nodes() == ["", ""]
    cluster.show(hyper_node("t", nodes=["n1", "n4"]))
    cluster.cycle()
    assert cluster.nodes() == ["n1", "n4"]


def test_what_a_trial_takes_is_given_back_when_it_is_undone() -> None:
    """Room, volumes that claims were to be bound to, and counts of pods that others must be apart from."""
    names = ["n0", "n1", "n2", "n3"]
    apart = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    here = {name: volume("local", 10, name) for name in ("n0", "n2")}
    limit = {"topology": {"highestTierAllowed": 1}}
    scenario = Scenario(
        {
            "nodes": [node_row(name, "a", 8) for name in names],
            "hyper_nodes": {"h1": {"nodes": names[:2]}, "h2": {"nodes": names[2:]}},
            "storage_classes": storage_classes(),
            "volumes": here,
            "claims": {f"c{index}": claim(f"c{index}", {"class": "local"}) for index in range(2)},
            "podgroups": [["ns", "pg", "default", 2, "Inqueue", limit]],
            "pods": [
                ["ns", f"p-{index}", "", "Pending", 1, "1Gi", "pg", {"labels": {"app": "x"}, "affinity": rules, "spec": {"volumes": pod_volumes([f"c{index}"])}}]
                for index in range(2)
            ],
        },
        config_text([["gang", "predicates", "network-topology-aware"]], ["allocate"]),
    )  # fmt: skip
    before = dump(scenario.state)
    result = scenario.cycle()
    assert result.binds == {}
    assert (
        "in one HyperNode of tier 1 or lower; h1 has room for 1" in result.pending["ns/pg"].summary
    )
    assert dump(scenario.state) == before
    claims = scenario.state.claims
    shapes = [task.shape.claims for task in scenario.state.tasks.values()]
    assert [claims.choices.of(each) for each in shapes] == [{}, {}]
    manifest = {"metadata": {"name": "n3"}} | volume("local", 10, "n3")
    scenario.state.set_volume(msgspec.convert(manifest, PersistentVolume))
    assert set(scenario.cycle().binds.values()) == {"n2", "n3"}
    chosen = [choice.volume for each in shapes for choice in claims.choices.of(each).values()]
    assert sorted(chosen) == ["n2", "n3"]


@pytest.mark.parametrize(("used", "trials", "nodes"), [({}, 1, "n0 n1 n2 n3"), ({"n5": 1}, 2, "n4 n5 n6 n7")])  # fmt: skip
def test_domains_that_are_alike_share_a_trial(used: Raw, trials: int, nodes: str) -> None:
    gang = {"pods": 4, "cpu": 7, "hard": 2, "parts": {"size": 2, "min": 2, "hard": 1}}
    cluster = Cluster({"used": used, "gang": gang})
    assert cluster.cycle().decided == 4 * trials
    assert cluster.nodes() == nodes.split()


def test_domains_follow_nodes_whose_rows_move() -> None:
    """A node that comes, in no HyperNode, moves the rows of all others."""
    cluster = Cluster({"used": FULL, "gang": {"pods": 2, "cpu": 8, "hard": 1}})
    cluster.cycle()
    first = copy.deepcopy(cluster.manifests["Node", "n0"])
    first["metadata"]["name"] = "m0"
    cluster.show(first)
    cluster.end("used-n2")
    cluster.end("used-n3")
    cluster.cycle()
    assert cluster.nodes() == ["n2", "n3"]
    ready = first["status"]["conditions"][0]
    ready["status"] = "False"
    cluster.show(first)
    cluster.cycle()
    assert len(cluster.state.levels.rows(cluster.state.network.root)) == 8
