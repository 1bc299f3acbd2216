"""The same states in a cluster and in `pumice simulate`: the same decisions for the same reasons.

The cluster is an embedded API server with admission, and the real controller and scheduler. What it has in the end is a
recorded state, too: a simulation that begins with it has nothing to decide, and gives the reasons that the cluster gives.
"""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.api import kinds
from pumice.api.crds import all_crds
from pumice.api.kinds import JOB, POD, POD_GROUP, PRIORITY_CLASS
from pumice.cli.development.dev_cluster import StoreView
from pumice.cli.development.dev_state import load
from pumice.cli.files.manifests import named, read
from pumice.cluster.client import Client
from pumice.controller.worker import ControllerSettings, ControllerWorker
from pumice.embedded import EmbeddedCluster, NodeTimings
from pumice.plugins import builtin
from pumice.scheduler import Config, load_config
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.rule import RuleSettings
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit import tables
from tests.kit.builders import job, node, pod, pod_group, queue, task
from tests.kit.quick_loop import wall
from tests.unit.cli.conftest import Pumice, logging_as_before, pumice

__all__ = ["logging_as_before", "pumice"]

Raw = dict[str, Any]

CYCLES = 6
"""More than any of the states takes."""

RECORDED = (
    kinds.NODE,
    kinds.NAMESPACE,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.RESOURCE_QUOTA,
    kinds.RUNTIME_CLASS,
    kinds.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.QUEUE,
    PRIORITY_CLASS,
    JOB,
    POD_GROUP,
    POD,
)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """An API server that asks admission, as that of `pumice dev` does."""
    view, timings = StoreView(), NodeTimings(start=0.0, stop=0.0)
    admission = Admission(RuleSettings(), view, builtin())
    found = EmbeddedCluster(
        all_crds(), admission=admission, registrations=REGISTRATIONS, timings=timings, clock=wall
    )
    view.store = found.store
    async with found:
        yield found


def manifests(case: Raw) -> list[Raw]:
    """The objects of a state, as users write them."""
    found = [node(name, str(cpu)) for name, cpu in case["nodes"].items()]
    found += [queue(state=""), *(queue(name, state="", **spec) for name, spec in case.get("queues", {}).items())]  # fmt: skip
    for name, fields in case.get("classes", {}).items():
        head = {"apiVersion": PRIORITY_CLASS.api_version, "kind": PRIORITY_CLASS.kind}
        found.append(head | {"metadata": {"name": name}} | fields)
    for name, minimum, phase, *spec in case.get("groups", []):
        found.append(pod_group(name, minimum, phase=phase, **(spec[0] if spec else {})))
    for name, group, place, cpu, *spec in case.get("pods", []):
        phase, options = "Running" if place else "Pending", spec[0] if spec else {}
        found.append(pod(name, group=group, node=place, phase=phase, cpu=str(cpu), **options))
    for each in found:
        each["metadata"].pop("uid", None)
    found += case.get("objects", [])
    for name, spec in case.get("jobs", {}).items():
        tasks = [
            task(
                role, replicas, cpu=str(cpu), spec=(options or [{}])[0], **(options[1:] or [{}])[0]
            )
            for role, replicas, cpu, *options in spec["tasks"]
        ]
        found.append(job(name, **(spec | {"tasks": tasks})))
    return found


def reasons(groups: dict[str, Raw]) -> dict[str, str]:
    """Messages of the gangs that say that they wait, by the gang."""
    return {
        name: each["message"].replace("\n", " ")
        for name, status in groups.items()
        for each in status.get("conditions") or ()
        if (each["type"], each["status"]) == ("Unschedulable", "True")
    }


def gang(group: Raw) -> str:
    """Name of the Job of a PodGroup, or of the PodGroup."""
    owners = group["metadata"].get("ownerReferences") or ()
    return str(next((each["name"] for each in owners), group["metadata"]["name"]))


class Played:
    """What a cluster made of a state."""

    def __init__(self, stage: SchedulerStage) -> None:
        self.groups = {gang(each): each.get("status") or {} for each in stage.all(POD_GROUP)}
        self.pods = {
            each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in stage.all(POD)
        }
        self.jobs = {
            each["metadata"]["name"]: each["status"]["state"].get("message", "")
            for each in stage.all(JOB)
        }
        self.objects = [each for kind in RECORDED for each in stage.store.list(kind)]


class Simulated:
    """What a simulation made of a state."""

    def __init__(self, ran: Raw, before: Iterable[Raw]) -> None:
        names = {key: each.get("job", key).partition("/")[2] for key, each in ran["podGroups"].items()}  # fmt: skip
        self.groups = {names[key]: each for key, each in ran["podGroups"].items()}
        self.pending = {names[key]: each["message"] for key, each in ran["pending"].items()}
        self.cycles = ran["cycles"]
        self.places = {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in before
            if each["kind"] == "Pod" and each["spec"].get("nodeName")
        }
        for cycle in self.cycles:
            self.places |= {key.partition("/")[2]: name for key, name in cycle["binds"].items()}
            for key in cycle["evicted"]:
                del self.places[key.partition("/")[2]]


async def play(stage: SchedulerStage, client: Client, state: Path, config: Config) -> Played:
    """Play a state until nothing happens any more."""
    load(stage.cluster, named(read([str(state)])))
    controller = ControllerWorker(client, builtin(), ControllerSettings())
    async with stage.alive(controller), stage.scheduler(config=config):
        await stage.until(lambda: all("phase" in (each.get("status") or {}) for each in stage.all(POD_GROUP)))  # fmt: skip
        await stage.calm(5.0)
        return Played(stage)


@pytest.mark.parametrize("case", tables.table("simulate/states"), ids=lambda case: case["title"])
async def test_a_state(
    case: Raw, stage: SchedulerStage, client: Client, pumice: Pumice, tmp_path: Path
) -> None:
    state, recorded = tmp_path / "state.json", tmp_path / "recorded.json"
    given = manifests(case)
    state.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": given}))
    conf, options = tmp_path / "scheduler.conf", ["-o", "json"]
    if "config" in case:
        conf.write_text(case["config"])
        options += ["--config", str(conf)]
    config = load_config(case.get("config"))
    played = await play(stage, client, state, config)
    ran = pumice("simulate", "--state", state, "--cycles", CYCLES, *options)
    simulated = Simulated(ran.json, given)

    assert {name: place for name, place in played.pods.items() if place} == case["places"]
    assert simulated.places == case["places"]
    for groups in (played.groups, simulated.groups):
        assert {name: each["phase"] for name, each in groups.items()} == case["phases"]
        told, expected = reasons(groups), case.get("reasons", {})
        assert told.keys() == expected.keys()
        assert all(part in told[name] for name, part in expected.items()), told
    assert reasons(simulated.groups) == reasons(played.groups)
    for name in played.jobs.keys() & case.get("reasons", {}).keys():
        assert case["reasons"][name] in played.jobs[name]

    recorded.write_bytes(
        msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": played.objects})
    )
    again = Simulated(pumice("simulate", "--state", recorded, *options).json, played.objects)
    assert again.cycles == [{"binds": {}, "pipelined": {}, "evicted": []}]
    assert reasons(again.groups) == reasons(played.groups)
    assert again.pending | reasons(played.groups) == again.pending
    assert {name: each["phase"] for name, each in again.groups.items()} == case["phases"]
