"""A cluster's past, simulated: what was recorded on the embedded cluster starts in the same order again."""

import asyncio
import json
from pathlib import Path

from pumice.api import keys
from pumice.api.kinds import JOB, NODE, POD, POD_GROUP, QUEUE
from pumice.cli.development.dev_cluster import DevCluster, dev_cluster
from pumice.cli.development.dev_nodes import read_nodes
from pumice.traces.formats import TraceFormat, read_trace
from tests.integration.cli.servers import ran
from tests.kit.builders import job, pod, pod_group, task
from tests.kit.waiting import until

JOBS = [("job-1", "2", "1s"), ("job-2", "1", "5s"), ("job-3", "1", "1s"), ("job-4", "2", "1s"), ("job-5", "1", "1s")]  # fmt: skip
"""Names, CPUs and durations on a node with 2 CPUs: job-5 starts before job-4, which needs all of it."""


async def recorded() -> str:
    """What kubectl writes after these Jobs and a gang without a Job."""
    async with dev_cluster(read_nodes("2")) as cluster:
        for name, cpu, duration in JOBS:
            annotations = {keys.RUN_DURATION: duration}
            tasks = [task(cpu=cpu, annotations=annotations)]
            await cluster.client.create(JOB, job(name, tasks, schedulerName="volcano"), "default")
        await until(lambda: phases(cluster).count("Completed") == len(JOBS))
        await cluster.client.create(POD_GROUP, pod_group("native", 2), "default")
        for number in range(2):
            raw = pod(f"native-{number}", group="native", cpu="1")
            raw["metadata"]["annotations"][keys.RUN_DURATION] = "1s"
            await cluster.client.create(POD, raw, "default")
        await until(lambda: all(has_ended(each) for each in cluster.api.store.list(POD)))
        listed = [
            each
            for kind in (JOB, POD_GROUP, POD, NODE, QUEUE)
            for each in cluster.api.store.list(kind)
        ]
    items = [
        each for each in listed if each["kind"] != "Pod" or each["metadata"]["name"][:3] == "nat"
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=4)


def phases(cluster: DevCluster) -> list[str]:
    jobs = cluster.api.store.list(JOB)
    return [each.get("status", {}).get("state", {}).get("phase", "") for each in jobs]


def has_ended(raw: dict[str, dict[str, str]]) -> bool:
    return raw.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def test_jobs_start_in_the_same_order(tmp_path: Path) -> None:
    """The pods of the Jobs are gone from what is read, so that their statuses alone tell."""
    dump = asyncio.run(recorded())
    trace = read_trace([("dump", dump.encode())])
    assert trace == read_trace([("dump", dump.encode())], TraceFormat.CLUSTER)
    assert trace.skipped == []
    real = {each.name: each.scheduled for each in trace.jobs}
    durations = {each.name: each.duration for each in trace.jobs}
    assert durations["native"] is not None
    assert (durations["job-2"] or 0) > (durations["job-3"] or 0)
    path = tmp_path / "dump.json"
    path.write_text(dump)
    told = ran("simulate", "--trace", str(path), "-o", "json")
    assert (told.code, told.err) == (0, "")
    starts = {each["name"]: each["start"] for each in told.json["jobs"]}
    order = ["job-1", "job-2", "job-3", "job-5", "job-4", "native"]
    assert sorted(starts, key=lambda name: (starts[name], name)) == order
    assert sorted(real, key=lambda name: (real[name] or 0, name)) == order
    nodes = {node for each in told.json["jobs"] for node in each["nodes"]}
    assert nodes == {trace.nodes[0].metadata.name}
