"""What namespaces have used survives the scheduler, in a ConfigMap."""

import json
from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP, POD
from pumice.scheduler import Config, load_config
from tests.integration.scheduler.stage import SchedulerStage
from tests.kit.requests import recorded

Raw = dict[str, Any]

NAME = "fairshare-usage-state"


def _config(**arguments: Any) -> Config:
    given = {"persistState": True, "resourceKey": "cpu", "flushIntervalSeconds": 1} | arguments
    text = json.dumps({f"fairshare.{key}": value for key, value in given.items()})
    return load_config(
        f"actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: fairshare, arguments: {text}}}, {{name: predicates}}]}}]"
    )


def _state(stage: SchedulerStage) -> Raw:
    found = [each for each in stage.all(CONFIG_MAP) if each["metadata"]["name"] == NAME]
    return dict(found[0]["data"]) if found else {}


def _used(stage: SchedulerStage) -> tuple[float, float]:
    """What namespace default has used, and holds, as it is saved."""
    text = _state(stage).get("usage.json")
    queues = json.loads(text)["queues"] if text else {}
    used, held = queues.get("default", {"namespaces": {}})["namespaces"].get("default", (0, 0))
    return used, held


async def test_usage_is_saved_and_read_by_the_next_leader(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("train", 2, cpu="2")
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _used(stage)[0] > 8)
    used, held = _used(stage)
    assert held == 4
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _used(stage)[0] > used)
    assert _used(stage)[0] - used < 4 * 30


async def test_without_pods_nothing_is_written(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("train", 1, cpu="2")
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: _used(stage)[0] > 2)
        stage.store.delete(POD, "train-0", "default")
        await stage.until(lambda: _used(stage)[1] == 0)
        before = _state(stage)
        await stage.calm()
        assert _state(stage) == before
    async with (
        recorded(stage.cluster.url) as (client, requests),
        stage.scheduler(client, config=_config()),
    ):
        await stage.calm()
    assert not [each for each in requests.writes if "configmaps" in str(each)]


@pytest.mark.parametrize("text", ["{", '{"at": "noon"}', "[1]"])
async def test_a_state_that_cannot_be_read_is_set_aside(stage: SchedulerStage, text: str) -> None:
    stage.cluster.add_node("node1", cpu="8")
    manifest = {"metadata": {"name": NAME, "namespace": "default"}, "data": {"usage.json": text}}
    stage.store.create({"apiVersion": "v1", "kind": "ConfigMap"} | manifest)
    stage.gang("train", 1, cpu="2")
    async with stage.scheduler(config=_config()):
        await stage.until(lambda: stage.events("UsageUnreadable"))
        await stage.until(lambda: _used(stage)[1] == 2)
    assert _state(stage)["unreadable.json"] == text
    (event,) = stage.events("UsageUnreadable")
    assert event["involvedObject"]["name"] == NAME
    assert (
        "is kept under unreadable.json, and the usage of all namespaces begins at 0"
        in event["message"]
    )


async def test_nothing_is_saved_unless_said(stage: SchedulerStage) -> None:
    stage.cluster.add_node("node1", cpu="8")
    stage.gang("train", 1, cpu="2")
    async with stage.scheduler(config=_config(persistState=False)):
        await stage.until(lambda: stage.phase("train") == "Running")
        await stage.calm()
    assert _state(stage) == {}
