"""A simulation plays API server and kubelets between cycles, and nothing else."""

from typing import Any

import msgspec
import pytest

from pumice.api import keys
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler import ClusterState, load_config
from pumice.scheduler.results import CycleFailedError
from pumice.scheduler.simulate import (
    ClusterObjects,
    Simulation,
    UnreadableObjectError,
)
from tests.kit.builders import node, pod, pod_group
from tests.kit.faulty import Fault, faulty_config
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.volume_scenarios import claim, pod_volumes, storage_classes, volume


def objects(nodes: list[Any], groups: list[Any], pods: list[Any]) -> ClusterObjects:
    return ClusterObjects(
        nodes=msgspec.convert(nodes, list[Node]),
        pod_groups=msgspec.convert(groups, list[PodGroup]),
        pods=msgspec.convert(pods, list[Pod]),
    )


def test_bound_pods_run_and_keep_running() -> None:
    scenario = objects([node("n")], [pod_group("g", 1)], [pod("p", group="g", cpu="1")])
    simulation = Simulation(scenario, load_config(None))
    assert simulation.cycle(0.0).binds == {"default/p": "n"}
    assert simulation.pods["default/p"].status.phase == "Pending"
    for _ in range(2):
        simulation.advance()
        assert simulation.pods["default/p"].status.phase == "Running"
        assert simulation.pods["default/p"].spec.node_name == "n"
        assert simulation.cycle(1.0).binds == {}
    assert simulation.pod_groups["default/g"].phase == "Running"
    assert scenario.pods[0].spec.node_name == ""


def test_bound_pods_run_as_if_their_next_version_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more than a status follows from it, such as until when a pod is to be spared."""
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "w"}},
    }
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    pods = [
        pod("plain", group="g", cpu="1"),
        pod("spared", group="g", cpu="1", labels={keys.COOLDOWN_TIME: "1m"}),
        pod("apart", group="g", cpu="1", labels={"app": "w"}, affinity=rules),
        pod("mounts", group="g", cpu="1", volumes=pod_volumes(["data"])),
        pod("nominated", group="g", cpu="1"),
        pod("alone", cpu="1"),
    ]
    pods[4]["status"] = {"phase": "Pending", "nominatedNodeName": "n"}

    def ran() -> tuple[object, ...]:
        given = objects([node("n"), node("m")], [pod_group("g", 4)], pods)
        simulation = Simulation(given, load_config(None))
        simulation.cycle(1.0)
        simulation.advance()
        state = simulation.state
        tasks = [
            (
                key,
                task.facts[1:],
                task.shown,
                task.labels,
                task.version,
                task.verdict,
                task.row >= 0,
            )
            for key, task in state.tasks.items()
        ]
        return tasks, state.assumed.pods, state.parked.version, state.cycles, dump(state)

    found = ran()
    monkeypatch.setattr(ClusterState, "run_pod", lambda _state, _key: False)
    assert found == ran()


def test_terminating_pods_go_and_ended_ones_stay() -> None:
    leaving = pod("leaving", node="n", phase="Running", cpu="4")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended = pod("ended", node="n", phase="Succeeded", cpu="4")
    simulation = Simulation(objects([node("n")], [], [leaving, ended]), load_config(None))
    simulation.cycle(0.0)
    assert set(simulation.pods) == {"default/leaving", "default/ended"}
    simulation.advance()
    assert set(simulation.pods) == {"default/ended"}
    assert simulation.pods["default/ended"].status.phase == "Succeeded"


def test_before_the_first_cycle_nothing_is_known() -> None:
    simulation = Simulation(objects([], [pod_group("g", 1)], []), load_config(None))
    assert simulation.pending == {}
    assert simulation.pod_groups == {}
    simulation.advance()


def test_what_cannot_be_read_is_named() -> None:
    broken = objects([node("n", cpu="many")], [], [])
    with pytest.raises(
        UnreadableObjectError, match=r'Node/n: quantities must match .* found "many"'
    ):
        Simulation(broken, load_config(None))


@pytest.mark.parametrize("leaves_out", [False, True])
def test_a_plugin_that_raises_is_named_with_the_gang_and_the_line(leaves_out: bool) -> None:
    """Where objects are left out, only what concerns no single gang ends the cycle."""
    given = objects([node("n")], [pod_group("bad", 1)], [pod("p", group="bad")])
    one = Simulation(given, faulty_config(Fault("job_valid", "bad")), leaves_out=leaves_out)
    if leaves_out:
        assert one.cycle(0.0).errors.keys() == {"default/bad"}
    else:
        with pytest.raises(
            CycleFailedError,
            match=r"^the scheduler failed at gang default/bad: ZeroDivisionError: fault at job_valid \(faulty.py, line \d+\)$",
        ):
            one.cycle(0.0)
    whole = Simulation(given, faulty_config(Fault("open", "any")), leaves_out=leaves_out)
    with pytest.raises(
        CycleFailedError,
        match=r"^a cycle of the scheduler failed: ZeroDivisionError: fault at open",
    ):
        whole.cycle(0.0)


def test_the_newest_moment_of_objects() -> None:
    early, late = node("a"), pod("p")
    early["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    late["status"]["startTime"] = "2026-01-01T01:00:00+01:00"
    late["status"]["conditions"] = [{"type": "Ready", "lastTransitionTime": "not a time"}]
    assert objects([early], [], [late]).newest() == 1767225600.0
    assert ClusterObjects().newest() == 0.0


def test_claims_that_wait_are_bound_as_it_was_decided() -> None:
    pods = [
        pod(f"p-{name}", group="g", namespace="ns", cpu="1", volumes=pod_volumes([name]))
        for name in ("made", "found")
    ]
    scenario = objects([node("n1")], [pod_group("g", 2, namespace="ns")], pods)
    for name, each in storage_classes().items():
        raw = {"metadata": {"name": name}, **each}
        scenario.storage_classes.append(msgspec.convert(raw, StorageClass))
    for name, used in (("made", "any"), ("found", "share")):
        raw = claim(name, {"class": used})
        scenario.claims.append(msgspec.convert(raw, PersistentVolumeClaim))
    raw = {"metadata": {"name": "disk"}, **volume("share", 5)}
    scenario.volumes.append(msgspec.convert(raw, PersistentVolume))
    simulation = Simulation(scenario, load_config(None))
    binds: dict[str, str] = {}
    for moment in range(4):
        binds |= simulation.cycle(float(moment)).binds
        simulation.advance()
    assert binds == {"ns/p-made": "n1", "ns/p-found": "n1"}
    claims = simulation.state.claims
    assert claims.objects.claims["ns/found"].spec.volume_name == "disk"
    assert claims.objects.claims["ns/made"].is_bound
    assert not claims.choices.by_claim
