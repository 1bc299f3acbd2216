"""Shares, victims, reservation and reload of the configuration, as users of a real cluster see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import EVENT, POD, POD_GROUP, PRIORITY_CLASS
from tests.e2e.scheduled import Cluster, running
from tests.kit.builders import job, task
from tests.kit.namespaces import Namespace
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import NAMESPACE, Installation

Raw = dict[str, Any]

SHARING = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
RESERVING = """
actions: "enqueue, elect, allocate, reserve"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: reservation}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
RECORDED = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: overcommit, arguments: {overcommit-factor: 2.0}}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PLACING_NOTHING = """
actions: "enqueue"
tiers:
- plugins: [{name: gang}]
"""
UNUSABLE = """
actions: "enqueue, alocate"
tiers:
- plugins: [{name: gang}]
"""


@pytest.fixture
def cluster(installation: Installation, namespace: str) -> Cluster:
    return Cluster(installation, namespace)


@pytest.fixture
def priority_classes(controlplane: ControlPlane) -> Iterator[None]:
    """Two PriorityClasses, `low` and `high`."""
    names = {"low": 10, "high": 1000}
    items = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in names.items()
    ]
    controlplane.kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    yield
    controlplane.kubectl("delete", "priorityclass", *names)


@pytest.fixture
def polite_class(controlplane: ControlPlane) -> Iterator[str]:
    """A PriorityClass whose pods preempt no others."""
    head = {"apiVersion": PRIORITY_CLASS.api_version, "kind": PRIORITY_CLASS.kind}
    fields = {"metadata": {"name": "polite"}, "value": 1000, "preemptionPolicy": "Never"}
    controlplane.kubectl("apply", "-f", "-", stdin=json.dumps(head | fields))
    yield "polite"
    controlplane.kubectl("delete", "priorityclass", "polite")


def test_a_queue_takes_back_its_share_and_no_more(
    cluster: Cluster, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    cluster.configure(SHARING)
    add_node("shared", "8")
    make_queue("production", weight=3)
    make_queue("research", weight=1)
    cluster.submit("batch", 8, 1, queue="research")
    before = running(cluster.await_running("batch", 8))
    cluster.kubectl("wait", "queue/research", "--for=jsonpath={.status.allocated.cpu}=8")

    since = cluster.revision(EVENT)
    cluster.submit("serve", 6, 6, queue="production")
    cluster.await_running("serve", 6)
    for name, cpu in (("production", 6), ("research", 2)):
        wait = f"--for=jsonpath={{.status.allocated.cpu}}={cpu}"
        cluster.kubectl("wait", f"queue/{name}", wait, "--timeout=60s")
    victims = [f"batch-w-{number}" for number in range(2, 8)]
    for message in cluster.told(victims, since):
        assert f"PodGroup {cluster.group_of('serve')} of queue production" in message
    explained = cluster.explain("queue", "research")
    assert "6 of 8 pods wait" in explained, explained
    assert "queue research: 2 of 2 cpu used, 0 more allowed" in explained, explained
    cluster.some_cycles()
    after = cluster.pods()
    assert len(running(after)) == 8
    assert len(before & running(after)) == 2, "neither victim nor survivor was exchanged"


def hold(cluster: Cluster, pods: Sequence[str], held: bool) -> None:
    """Keep pods that are evicted from going, or let them go."""
    patch = json.dumps({"metadata": {"finalizers": ["tests/hold"] if held else None}})
    for name in pods:
        cluster.kubectl("patch", f"pod/{name}", "--type=merge", "--patch", patch)


def test_a_job_takes_the_place_of_one_of_a_lower_priority_class(
    cluster: Cluster,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
    priority_classes: None,
) -> None:
    cluster.configure(PREEMPTING)
    add_node("contested", "4")
    make_queue("line")
    cluster.submit("low", 4, 2, queue="line", priorityClassName="low")
    before = running(cluster.await_running("low", 4))

    cluster.submit("peer", 2, 2, queue="line", priorityClassName="low")
    cluster.await_condition("peer", "Unschedulable", "Insufficient cpu")
    cluster.some_cycles()
    assert running(cluster.pods()) == before, "nothing goes for a Job of the same priority"

    victims = ("low-w-2", "low-w-3")
    hold(cluster, victims, True)  # so that what is promised lasts long enough to be seen
    since = cluster.revision(EVENT)
    cluster.submit("high", 2, 2, queue="line", priorityClassName="high")
    for name in ("high-w-0", "high-w-1"):
        nominated = "--for=jsonpath={.status.nominatedNodeName}=contested"
        cluster.kubectl("wait", f"pod/{name}", "--for=create", "--timeout=60s")
        cluster.kubectl("wait", f"pod/{name}", nominated, "--timeout=60s")
    hold(cluster, victims, False)
    cluster.await_running("high", 2)
    for message in cluster.told(victims, since):
        assert f"PodGroup {cluster.group_of('high')} of queue line" in message
    cluster.some_cycles()
    left = running(cluster.pods()) & before
    assert len(left) == 2, "the gang of low priority keeps its minimum"


def test_a_gang_that_lost_a_pod_gets_its_place_back_before_an_older_one_that_waits(
    cluster: Cluster, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    cluster.configure(PREEMPTING)
    node = add_node("crowded", "4")
    make_queue("line")
    cluster.submit("filler", 1, 1, cpu="2", queue="line")
    cluster.await_running("filler", 1)
    cluster.submit("waits", 1, 1, cpu="3", queue="line")
    cluster.await_condition("waits", "Unschedulable", "Insufficient cpu")
    cluster.submit("broken", 2, 2, queue="line")
    before = running(cluster.await_running("broken", 2))

    cluster.kubectl("cordon", node)
    cluster.kubectl("delete", "pod/broken-w-0", "--force")
    cluster.kubectl("wait", "pod/broken-w-0", "--for=create", "--timeout=60s")
    cluster.kubectl("delete", "vcjob/filler", "--wait=false")
    wait_until(lambda: not any(name.startswith("filler-") for name in cluster.pods()))
    cluster.kubectl("uncordon", node)  # 3 cpu are free: enough for either, not for both
    after = running(cluster.await_running("broken", 2))
    assert len(before & after) == 1
    assert not cluster.pods()["waits-w-0"]["spec"].get("nodeName")


def test_partitions_start_together_and_one_is_restarted_as_a_unit(
    cluster: Cluster, add_node: Callable[..., str], make_queue: Callable[..., str]
) -> None:
    cluster.configure(PREEMPTING)
    make_queue("divided")
    for number in range(3):
        add_node(f"divided-{number}", "1")
    parts = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}
    policies = [{"event": "PodFailed", "action": "RestartPartition"}]
    pair = task("w", 6, cpu="1", partitionPolicy=parts)
    manifest = job("pair", [pair], namespace=cluster.name, queue="divided", policies=policies)
    cluster.plane.apply(manifest)
    cluster.await_condition("pair", "Unschedulable", "Insufficient cpu")
    assert not any(pod["spec"].get("nodeName") for pod in cluster.pods().values())
    assert "0 of 3 sub-groups of w are ready, at least 2" in cluster.explain("job", "pair")

    add_node("divided-3", "1")
    add_node("divided-4", "1")
    began = cluster.await_running("pair", 4)
    placed = {name for name, pod in began.items() if pod["spec"].get("nodeName")}
    assert placed == {"pair-w-0", "pair-w-1", "pair-w-2", "pair-w-3"}
    cluster.some_cycles()
    assert len(running(cluster.pods())) == 4, "half of a partition is not placed"
    told = json.loads(cluster.explain("job", "pair", "-o", "json"))["podGroup"]
    [policy] = told["subGroupPolicies"]
    assert [each["state"] for each in policy["subGroups"]] == ["Waiting", "Ready", "Ready"]

    add_node("divided-5", "1")
    before = cluster.await_running("pair", 6)
    failed = ("--subresource=status", "--type=merge", '-p={"status":{"phase":"Failed"}}')
    cluster.kubectl("patch", "pod/pair-w-2", *failed)

    def again(pods: dict[str, Raw]) -> set[str]:
        new = {name for name in before if name in pods and _uid(pods[name]) != _uid(before[name])}
        return new if new and len(running(pods)) == 6 else set()

    replaced = cluster.until(POD, again, "the partition runs again")
    assert replaced == {"pair-w-2", "pair-w-3"}


def _uid(pod: Raw) -> str:
    return str(pod["metadata"]["uid"])


def test_a_simulation_of_what_a_cluster_holds_decides_as_the_cluster_does(
    cluster: Cluster,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
    polite_class: str,
    tmp_path: Path,
) -> None:
    cluster.configure(RECORDED)
    add_node("recorded", "4")
    make_queue("recording")
    cluster.submit("runs", 4, 4, queue="recording")
    before = running(cluster.await_running("runs", 4))
    waiting = {
        "polite": "Insufficient cpu",
        "strange": "schedulerName other",
        "large": "% of the cluster",
    }
    cluster.submit("polite", 1, 1, queue="recording", priorityClassName=polite_class)
    cluster.await_condition("polite", "Unschedulable", waiting["polite"])
    cluster.submit("strange", 1, 1, queue="recording", schedulerName="other")
    cluster.await_condition("strange", "Unschedulable", waiting["strange"])
    cluster.submit("large", 8, 8, queue="recording")
    cluster.await_condition("large", "Unschedulable", waiting["large"])
    told = {
        cluster.group_of(name): cluster.await_condition(name, "Unschedulable", text)["reason"]
        for name, text in waiting.items()
    }
    cluster.some_cycles()
    assert running(cluster.pods()) == before
    assert waiting["strange"] in cluster.explain("job", "strange")

    kinds = (
        "nodes,priorityclasses,queues.scheduling,podgroups.scheduling,pods,jobs.batch.volcano.sh"
    )
    state = tmp_path / "state.json"
    state.write_text(cluster.kubectl("get", kinds, "--output=json"))
    simulated = cluster.simulate(state)
    assert simulated["cycles"] == [{"binds": {}, "pipelined": {}, "evicted": []}]
    pending = simulated["pending"]
    assert {key: each["reason"] for key, each in pending.items()} == told
    for name, text in waiting.items():
        assert text in pending[cluster.group_of(name)]["message"]
    phases = {
        f"{cluster.name}/{each['metadata']['name']}": each["status"]["phase"]
        for each in cluster.all(POD_GROUP)
    }
    assert {key: each["phase"] for key, each in simulated["podGroups"].items()} == phases


def test_reserved_nodes_stay_so_when_the_scheduler_is_killed(
    cluster: Cluster,
    installation: Installation,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
) -> None:
    cluster.configure(RESERVING)
    for name in ("kept-1", "kept-2"):
        add_node(name, "4")
    make_queue("keeping")
    cluster.submit("busy", 2, 2, cpu="3", queue="keeping")
    cluster.await_running("busy", 2)
    cluster.submit("large", 2, 2, cpu="3", queue="keeping")
    reserved = cluster.await_condition("large", "Reserved", "kept-1, kept-2")

    installation.stop_leader("scheduler")
    cluster.submit("small", 1, 1, queue="keeping")
    installation.start("scheduler")
    cluster.await_condition(
        "small", "Unschedulable", "reserved for gang " + cluster.group_of("large")
    )
    cluster.some_cycles()
    assert cluster.await_condition("large", "Reserved", "") == reserved

    cluster.kubectl("delete", "vcjob/busy")
    pods = cluster.await_running("large", 2)
    assert {each["spec"]["nodeName"] for each in pods.values()} == {"kept-1", "kept-2"}
    cluster.await_condition("large", "Reserved", "the gang has its nodes", status="False")
    cluster.await_running("small", 1)


def test_a_changed_configuration_is_in_force_and_a_bad_one_is_reported(
    cluster: Cluster,
    controlplane: ControlPlane,
    installation: Installation,
    add_node: Callable[..., str],
    make_queue: Callable[..., str],
) -> None:
    add_node("reloaded", "4")
    make_queue("reloading")
    system = Namespace(controlplane, NAMESPACE)
    cluster.configure(PLACING_NOTHING)
    cluster.submit("first", 1, 1, queue="reloading")
    cluster.until(POD, lambda pods: "first-w-0" in pods, "the gang is let in, and its pod made")
    cluster.some_cycles()
    assert not running(cluster.pods())

    cluster.configure(SHARING)
    cluster.await_running("first", 1)

    since = system.revision(EVENT)
    installation.configure_scheduler(UNUSABLE)

    def refused(events: dict[str, Raw]) -> Raw | None:
        return next((e for e in events.values() if e["reason"] == "ConfigUnusable"), None)

    event = system.until(EVENT, refused, "an event of the Lease", since=since)
    said = 'unknown action "alocate"'
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "Lease")
    assert event["involvedObject"]["name"] == "pumice-scheduler"
    assert said in event["message"]
    (line,) = (
        line
        for line in installation.answer("scheduler", "/readyz?verbose").splitlines()
        if line.startswith("[!]configuration: ")
    )
    assert said in line
    assert line.endswith("the configuration read before stays in effect")
    assert cluster.count("config_unusable") == 1
    logged = said.replace('"', '\\"')  # a line of JSON
    assert logged in installation.processes["scheduler"].tail()
    assert installation.ready("scheduler")
    cluster.submit("second", 1, 1, queue="reloading")
    cluster.await_running("second", 1)

    cluster.configure(PLACING_NOTHING)
    wait_until(
        lambda: "[+]configuration: ok" in installation.answer("scheduler", "/readyz?verbose")
    )
    assert cluster.count("config_unusable") == 0
