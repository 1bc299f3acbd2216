from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pumice.api.hypernodes import HyperNode
from pumice.api.jobs import Job
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cli.live.explanation_text import text_of
from pumice.cli.live.explanations import of_job, of_pod, of_queue, positioned_gangs
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Follower, simulated
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from tests.kit.builders import job, node, pod, pod_group, queue
from tests.unit.scheduler.network_trees import hyper_node

NAME = "train-u"


@pytest.mark.parametrize(("minimum", "words"), [(1, "at least 1 pod\n"), (3, "at least 3 pods\n")])
def test_a_minimum_is_one_pod_or_several(minimum: int, words: str) -> None:
    group = msgspec.convert(pod_group(NAME, minimum), PodGroup)
    found = {"message": "", "podGroup": {**group_of(group)}, "notAllowed": []}
    assert words in text_of(found) + "\n"


def test_changes_that_let_a_gang_into_its_queue_are_said_to_do_only_that() -> None:
    enough = [{"text": "queue a instead of b", "change": {}}]
    found = {"message": "", "enough": enough, "notAllowed": []}
    assert "\nEach of these would be enough:\n" in text_of(found | {"enters": False})
    assert "\nEach of these would be enough to enter the queue:\n" in text_of(
        found | {"enters": True}
    )


@pytest.mark.parametrize(
    ("message", "is_shown"), [("it waits: b; a", False), ("it waits: a", True)]
)
def test_numbers_that_the_first_sentence_has_are_not_said_again(
    message: str, is_shown: bool
) -> None:
    found = {"message": message, "summary": "a; b", "notAllowed": []}
    assert ("\na; b" in text_of(found)) is is_shown


def group_of(group: PodGroup) -> dict[str, Any]:
    return {
        "name": group.metadata.name,
        "queue": "default",
        "phase": "Pending",
        "minMember": group.spec.min_member,
        "conditions": [],
        "subGroupPolicies": [],
    }


def test_sub_groups_of_a_gang_are_told_with_their_state() -> None:
    policy = {
        "name": "worker",
        "subGroupSize": 2,
        "minSubGroups": 1,
        "labelSelector": {"matchLabels": {"task": "worker"}},
        "matchLabelKeys": ["number"],
    }
    group = pod_group(NAME, 2, phase="Running", subGroupPolicy=[policy, {"name": "rest"}])
    pods = []
    for number, count in (("0", 2), ("1", 2), ("2", 1)):
        for index in range(count):
            of_job_labels = {"volcano.sh/job-name": "train", "task": "worker", "number": number}
            phase, place = ("Running", "n") if number == "0" else ("Pending", "")
            name = f"train-worker-{number}-{index}"
            pods.append(pod(name, group=NAME, labels=of_job_labels, node=place, phase=phase))
    objects = ClusterObjects(
        pod_groups=msgspec.convert([group], list[PodGroup]), pods=msgspec.convert(pods, list[Pod])
    )
    seen = ReadableCluster("default", objects)
    owner = msgspec.convert(job("train", uid="u"), Job)
    found = of_job(owner, seen, Follower(load_config(None)).follow, 0.0)
    workers, rest = found["podGroup"]["subGroupPolicies"]
    assert rest == {"name": "rest", "minSubGroups": 0, "ready": 0, "subGroups": []}
    assert (workers["name"], workers["minSubGroups"], workers["ready"]) == ("worker", 1, 1)
    assert workers["subGroups"][1] == {
        "labels": {"number": "2"},
        "size": 2,
        "pods": 1,
        "ready": 0,
        "state": "Incomplete",
    }
    assert [each["state"] for each in workers["subGroups"]] == ["Waiting", "Incomplete", "Ready"]
    told = of_pod(objects.pods[0], seen, Follower(load_config(None)).follow, 0.0)["podGroup"][
        "subGroupPolicies"
    ]
    assert told == [workers, rest]
    assert (
        "\n  1 of 3 sub-groups of worker are ready, at least 1"
        "\n    1 waits: 0 of 2 pods have a place"
        "\n    2 has too few pods: 0 of 2 pods have a place"
        "\n  0 of 0 sub-groups of rest are ready, none is required"
    ) in text_of(found)


def test_a_gang_is_told_to_be_in_a_hyper_node_and_so_is_each_sub_group() -> None:
    policy = {"name": "worker", "matchLabelKeys": ["number"], "networkTopology": {"mode": "soft"}}
    group = pod_group(NAME, 2, phase="Running", subGroupPolicy=[policy])
    racks = [hyper_node(f"rack-{each}", nodes=[f"node-{each}"]) for each in "ab"]
    racks.append(hyper_node("switch", 2, below=["rack-a", "rack-b"]))
    labels = {"volcano.sh/job-name": "train"}
    pods = [
        pod(f"train-w-{each}", group=NAME, labels={**labels, "number": each}, node=f"node-{each}", phase="Running")
        for each in "ab"
    ]  # fmt: skip
    objects = ClusterObjects(
        nodes=msgspec.convert([node(f"node-{each}") for each in "abc"], list[Node]),
        hyper_nodes=msgspec.convert(racks, list[HyperNode]),
        pod_groups=msgspec.convert([group], list[PodGroup]),
        pods=msgspec.convert(pods, list[Pod]),
    )
    seen = ReadableCluster("default", objects)
    found = of_job(
        msgspec.convert(job("train", uid="u"), Job), seen, Follower(load_config(None)).follow, 0.0
    )
    assert found["podGroup"]["network"] == {
        "hyperNode": "switch",
        "tier": 2,
        "subGroups": [
            {"policy": "worker", "labels": {"number": each}, "hyperNode": f"rack-{each}", "tier": 1}
            for each in "ab"
        ],
    }
    assert (
        "\n  its pods are in HyperNode switch (tier 2)"
        "\n    worker a in HyperNode rack-a (tier 1)"
        "\n    worker b in HyperNode rack-b (tier 1)"
    ) in text_of(found)
    objects.hyper_nodes.pop()
    found = of_job(
        msgspec.convert(job("train", uid="u"), Job), seen, Follower(load_config(None)).follow, 0.0
    )
    assert "\n  its pods are in no HyperNode together\n" in text_of(found)


def test_a_queue_with_pods_on_a_node_that_is_not_ready() -> None:
    """They are used, and no part of what it deserves."""
    lost = node("lost", "12")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    running = pod("train-0", group="train", cpu="12", node="lost", phase="Running")
    team = msgspec.convert(queue("team"), Queue)
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4"), lost], list[Node]),
        queues=[team],
        pod_groups=[
            msgspec.convert(pod_group("train", 1, queue="team", phase="Running"), PodGroup)
        ],
        pods=msgspec.convert([running, pod("train-1", group="train", cpu="5")], list[Pod]),
    )
    seen = ReadableCluster("default", objects)
    found = of_queue(team, seen, simulated(seen, load_config(None), 0.0))
    cpu = found["resources"]["cpu"]
    assert (cpu["used"], cpu["deserved"]) == ("12", "4")
    assert found["message"].endswith("; on nodes that are not ready its pods hold 12 cpu")


def test_a_queue_that_holds_more_than_a_limit_which_nothing_enforces() -> None:
    """The default configuration has no tree of queues: the limit of the department does not hold for the team's pods."""
    department = msgspec.convert(queue("department", capability={"cpu": "2"}), Queue)
    team = msgspec.convert(queue("team", parent="department"), Queue)
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4")], list[Node]),
        queues=[department, team],
        pod_groups=[
            msgspec.convert(pod_group("train", 1, queue="team", phase="Running"), PodGroup)
        ],
        pods=[
            msgspec.convert(pod("train-0", group="train", cpu="3", node="n", phase="Running"), Pod)
        ],
    )
    seen = ReadableCluster("default", objects)
    found = of_queue(department, seen, simulated(seen, load_config(None), 0.0))
    said = "spec.capability: no configured plugin of the scheduler enforces this for the queues below; use capacity with enableHierarchy: true"
    assert found["notEnforced"] == said
    assert said in text_of(found).splitlines()
    assert of_queue(team, seen, simulated(seen, load_config(None), 0.0))["notEnforced"] == ""


SAVED = '{"at": 0, "queues": {"team": {"resource": "cpu", "namespaces": {"vision": [7200, 3], "speech": [3600, 0]}}}}'
COUNTING = """
actions: allocate
tiers: [{plugins: [{name: gang}, {name: fairshare, arguments: {fairshare.resourceKey: cpu, fairshare.persistState: true}}, {name: predicates}]}]
"""


def test_a_queue_whose_namespaces_take_turns() -> None:
    team = msgspec.convert(queue("team"), Queue)
    groups = [
        pod_group("train", 1, queue="team", phase="Running", namespace="vision"),
        pod_group("next", 1, queue="team", phase="Inqueue", namespace="vision"),
        pod_group("next", 1, queue="team", phase="Inqueue", namespace="speech"),
    ]
    pods = [
        pod("train-0", group="train", cpu="3", node="n", phase="Running", namespace="vision"),
        pod("next-0", group="next", cpu="2", namespace="vision"),
        pod("next-0", group="next", cpu="2", namespace="speech"),
    ]
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "4")], list[Node]),
        queues=[team],
        pod_groups=msgspec.convert(groups, list[PodGroup]),
        pods=msgspec.convert(pods, list[Pod]),
        usage=SAVED,
    )
    seen, config = ReadableCluster("vision", objects), load_config(COUNTING)
    found = of_queue(team, seen, simulated(seen, config, 0.0))
    assert found["namespaces"] == {
        "resource": "cpu",
        "byNamespace": {
            "speech": {"usedHours": 1.0, "holds": "0", "waitsFor": "2", "share": "2"},
            "vision": {"usedHours": 2.0, "holds": "3", "waitsFor": "2", "share": "2"},
        },
    }
    assert [each["podGroup"] for each in found["waiting"]] == ["speech/next", "vision/next"]
    text = text_of(found)
    assert "Namespaces by what they have used of cpu, in hours of one, with a half-life:" in text
    assert "speech     1.00  0      2          2" in text
    assert of_queue(team, seen, simulated(seen, load_config(None), 0.0))["namespaces"] is None


def test_an_object_that_cannot_be_read_is_left_out_and_said_and_all_others_count() -> None:
    names = ("odd", "sound")
    groups = [pod_group(name, 1, queue="other", phase="Inqueue") for name in names]
    groups[0]["spec"]["minResources"] = {"cpu": "1e31"}
    team = queue("team", capability={"cpu": "1e31"})
    objects = ClusterObjects(
        nodes=msgspec.convert([node("n", "1")], list[Node]),
        queues=msgspec.convert([team, queue("other")], list[Queue]),
        pod_groups=msgspec.convert(groups, list[PodGroup]),
        pods=msgspec.convert([pod(f"{each}-0", group=each, cpu="2") for each in names], list[Pod]),
    )
    seen, config = ReadableCluster("default", objects), load_config(None)
    follower = Follower(config)
    figures = follower.look(seen, 0.0)
    waiting = positioned_gangs(seen, figures)
    why = 'exponents must be at most 30: found "1e31"'
    assert why in waiting["default/odd"]["summary"]
    assert "needs 2 cpu" in waiting["default/sound"]["summary"]
    for each in objects.queues:
        text = text_of(of_queue(each, seen, figures))
        assert "Not counted: Queue/team: " in text
        assert "; PodGroup/default/odd: " in text
    for name, told in (("odd", why), ("sound", None)):
        found = of_pod(
            next(p for p in objects.pods if p.metadata.name == f"{name}-0"),
            seen,
            follower.follow,
            0.0,
        )
        assert told is None or told in found["notComputed"]
        assert bool(found["numbers"]) is (told is None)
    changed = replace(
        objects.pod_groups[0], spec=replace(objects.pod_groups[0].spec, min_resources=None)
    )
    objects.pod_groups[0], before = changed, objects.pod_groups[0]
    figures = follower.look(seen, 0.0, [(before, changed)])
    assert list(figures.left_out) == ["Queue/team"]


def test_a_saved_usage_that_cannot_be_read_is_said() -> None:
    objects = ClusterObjects(nodes=msgspec.convert([node("n", "4")], list[Node]), usage="{")
    team = msgspec.convert(queue("team"), Queue)
    seen = ReadableCluster("default", objects)
    found = of_queue(team, seen, simulated(seen, load_config(COUNTING), 0.0))
    assert "data[usage.json] is not the saved usage of namespaces" in found["notComputed"]
