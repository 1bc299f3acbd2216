"""A controller that is killed at a write for a JobFlow, before it is sent or before its answer arrives.

The same JobFlow runs once undisturbed and then, in namespaces of its own, once for each write. A second controller takes over:
each Job is created once, whether it is still there or went at its end, and everything ends as it did undisturbed.
"""

import asyncio
from typing import Any

from pumice.api import keys
from pumice.api.kinds import COMMAND, JOB, JOB_FLOW, JOB_TEMPLATE, Kind
from pumice.cluster.client import Client
from pumice.embedded import EmbeddedCluster
from tests.integration.controller.mortal import MortalClient, mortal_stage, play
from tests.integration.controller.stage import ControllerStage
from tests.integration.controller.test_job_flows import (
    create,
    job_flow,
    made_from,
    phase,
    status,
    template,
)

Raw = dict[str, Any]

ALIVE = frozenset(
    {"job-controller", "gc-controller", "jobflow-controller", "jobtemplate-controller"}
)

GONE_AT_ITS_END = {"a", "b"}
FLOWS: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"]}
ENDS = {"bad": ("5ms", "1"), "long": ("1h", "0")}


class CountingClient(Client):
    """Notes which Jobs were created."""

    created: list[str]

    async def create(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        made = await super().create(kind, *args, **named)
        if kind == JOB:
            self.created.append(made["metadata"]["name"])
        return made


class MortalCountingClient(MortalClient, CountingClient):
    """Never answers again once it has come to a given write for the JobFlow; those for pods are another test's matter."""

    async def _mortal(self, kind: Kind, write: Any) -> Raw:
        counts = kind in (COMMAND, JOB, JOB_FLOW, JOB_TEMPLATE) or self.dead.is_set()
        return await (super()._mortal(kind, write) if counts else write())

    async def patch(self, kind: Kind, *args: Any, **named: Any) -> Raw:
        if kind == JOB and not self.dead.is_set():
            return await Client.patch(self, kind, *args, **named)
        return await super().patch(kind, *args, **named)


async def run(
    cluster: EmbeddedCluster,
    namespace: str,
    last: int | None,
    *,
    after: bool,
    fails: bool = False,
) -> tuple[list[str], Raw, MortalCountingClient]:
    """The Jobs that were created, the status in the end, and the client of the first controller."""
    created: list[str] = []
    playing = mortal_stage(
        cluster, namespace, last, after=after, alive=CountingClient, of=MortalCountingClient
    )
    async with playing as (stage, mortal):
        assert isinstance(stage.client, CountingClient)
        mortal.created = stage.client.created = created
        if fails:
            annotations = {keys.FLOW_RETRIES: "1", keys.ON_FAILURE: "stop"}
            objects = [template(name, ends=ends) for name, ends in ENDS.items()]
            objects.append(job_flow({name: [] for name in ENDS}, annotations))
        else:
            gone: Raw = {"ttlSecondsAfterFinished": 0}
            objects = [
                template(name, **(gone if name in GONE_AT_ITS_END else {})) for name in FLOWS
            ]
            objects.append(job_flow(FLOWS, jobRetainPolicy="delete"))
        await create(stage, *objects)
        scenario = _to_the_failure(stage) if fails else _to_the_end(stage)
        await play(stage, mortal, scenario, ALIVE)
        return created, status(stage), mortal


async def _to_the_end(stage: ControllerStage) -> None:
    await stage.until(lambda: phase(stage) == "Succeed", "the JobFlow to succeed")
    await stage.until(lambda: not stage.names(JOB), "Jobs to go")
    await stage.until(
        lambda: not any(made_from(stage, name) for name in FLOWS), "the lists of the templates"
    )


async def _to_the_failure(stage: ControllerStage) -> None:
    await stage.until(lambda: status(stage).get("terminatedJobs") == ["f-long"], "the end")
    await stage.until(lambda: not stage.names(COMMAND), "the Command to be carried out")


async def test_a_failed_job_is_retried_once(cluster: EmbeddedCluster) -> None:
    """Then the other Job is terminated; no retry is lost, and none comes twice."""
    created, expected, calm = await run(cluster, "undisturbed", None, after=False, fails=True)
    assert sorted(created) == ["f-bad", "f-bad-retry-1", "f-long"]
    told = await asyncio.gather(
        *(run(cluster, f"killed-{n}", n, after=n % 2 == 1, fails=True) for n in range(calm.writes))
    )
    assert sum(mortal.dead.is_set() for *_, mortal in told) > len(told) / 2
    for number, (made, found, _) in enumerate(told):
        assert sorted(made) == sorted(created), f"killed at write {number}"
        for key in ("failedJobs", "terminatedJobs", "state"):
            assert found[key] == expected[key], f"killed at write {number}"


async def test_each_job_runs_once(cluster: EmbeddedCluster) -> None:
    created, expected, calm = await run(cluster, "undisturbed", None, after=True)
    assert created == [f"f-{name}" for name in FLOWS]
    told = await asyncio.gather(
        *(run(cluster, f"killed-{n}", n, after=True) for n in range(calm.writes))
    )
    assert sum(mortal.dead.is_set() for *_, mortal in told) > len(told) / 2
    for number, (made, found, _) in enumerate(told):
        assert sorted(made) == sorted(created), f"killed at write {number}"
        assert found["completedJobs"] == expected["completedJobs"], f"killed at write {number}"
        states = {each["name"]: each["state"] for each in found["jobStatusList"]}
        assert states == dict.fromkeys(sorted(created), "Completed"), f"killed at write {number}"
