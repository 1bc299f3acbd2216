"""Alibaba's trace of GPU clusters of 2023 (`openb`): a CSV file of pods, and one of nodes.

A pod becomes a job of one pod: submitted at its creation, running from its scheduling to its deletion, failing if its phase is
Failed. One that was never scheduled has no duration and is left out. `gpu_spec` becomes a node affinity for the label that nodes get
from `model`. A pod that asks for a share of a GPU (`gpu_milli` below 1000) gets a whole one, because Kubernetes schedules whole devices: a
simulated cluster is fuller than the real one was. `qos` has no effect.

Source: https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023.
"""

from functools import cache
from typing import Any

from pumice.api.kinds import JOB
from pumice.api.messages import counted
from pumice.api.names import dns_subdomain_problem, label_value_problem
from pumice.api.nodes import Node
from pumice.traces.amounts import GPU
from pumice.traces.job_list import BadLineError, JobList, by_name, number, whole
from pumice.traces.node_spec import NODES_LIMIT, node_with
from pumice.traces.own_format import csv_rows
from pumice.traces.trace import Trace, TraceError, TraceJob

POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")

_MODEL = "nvidia.com/gpu.product"
"""Label of a node with the model of its GPUs, as NVIDIA's GPU feature discovery sets it."""
_MOST = 10**12
_PODS = "110"
_NOT_KNOWN = {"", "nan"}

Row = dict[str, str]


def read_openb_pods(data: bytes) -> Trace:
    """Read the file of pods.

    Raises:
        TraceError: A column is missing, it has too many lines, or too many bad ones.
    """
    jobs = JobList()
    shares = 0
    for place, row in csv_rows(data, POD_COLUMNS, jobs):
        try:
            job = _job(row)
            if job is None:
                jobs.skip(place, "the pod was never scheduled", is_bad=False)
                continue
            jobs.add(job, by_name(job.name))
            shares += GPU in job.requests and number(row["gpu_milli"] or "1000", "gpu_milli") < 1000
        except BadLineError as error:
            jobs.skip(place, str(error))
    if shares:
        jobs.remarks.append(
            f"{counted(shares, 'pod')} asked for a share of a GPU; each gets a whole one"
        )
    return jobs.trace()


def read_openb_nodes(data: bytes) -> list[Node]:
    """Read the file of nodes.

    Raises:
        TraceError: A column is missing, a line is bad, or there are too many.
    """
    reading = JobList()
    nodes: dict[str, Node] = {}
    for place, row in csv_rows(data, NODE_COLUMNS, reading):
        try:
            node = _node(row)
        except BadLineError as error:
            raise TraceError(f"nodes, line {place}: {error}") from None
        if nodes.setdefault(node.metadata.name, node) is not node:
            raise TraceError(f"nodes, line {place}: a second node {node.metadata.name}")
        if len(nodes) > NODES_LIMIT:
            raise TraceError(f"more than {NODES_LIMIT:,} nodes")
    if reading.skipped:
        first = reading.skipped[0]
        raise TraceError(f"nodes, line {first.line}: {first.why}")
    return list(nodes.values())


def _job(row: Row) -> TraceJob | None:
    """The job of a pod; None if it was never scheduled."""
    if not row["name"]:
        raise BadLineError("name is empty")
    created = number(row["creation_time"], "creation_time")
    gpus = whole(row["num_gpu"], "num_gpu", 0, 1000)
    requests = _cpu_and_memory(row) | ({GPU: str(gpus)} if gpus else {})
    if row["scheduled_time"] in _NOT_KNOWN:
        return None
    scheduled = number(row["scheduled_time"], "scheduled_time", created)
    deleted = row["deletion_time"]
    spec = row["gpu_spec"]
    return TraceJob(
        name=row["name"],
        submit=created,
        duration=None
        if deleted in _NOT_KNOWN
        else number(deleted, "deletion_time", scheduled) - scheduled,
        min=1,
        requests=requests,
        manifest=_manifest(spec, tuple(requests.items()))
        if spec not in _NOT_KNOWN and gpus
        else None,
        fails=row["pod_phase"] == "Failed",
        scheduled=scheduled,
    )


def _cpu_and_memory(row: Row) -> dict[str, str]:
    cpu = whole(row["cpu_milli"], "cpu_milli", 0, _MOST)
    memory = whole(row["memory_mib"], "memory_mib", 0, _MOST)
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}


@cache
def _manifest(spec: str, requests: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """A Job of one pod that runs on GPUs of some models only."""
    models = [model for model in spec.split("|") if model]
    if not models or any(label_value_problem(model) for model in models):
        raise BadLineError(f"gpu_spec is {spec[:40]}; expected models with | between")
    needed = {"matchExpressions": [{"key": _MODEL, "operator": "In", "values": models}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [needed]}}
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": dict(requests), "limits": dict(requests)},
    }
    template = {"spec": {"affinity": {"nodeAffinity": affinity}, "containers": [container]}}
    task = {"name": "worker", "replicas": 1, "template": template}
    return {**JOB.type_meta, "metadata": {}, "spec": {"minAvailable": 1, "tasks": [task]}}


def _node(row: Row) -> Node:
    name = row["sn"].lower()
    if problem := dns_subdomain_problem(name):
        raise BadLineError(f"sn: {problem}")
    amounts = _cpu_and_memory(row) | {"pods": _PODS}
    labels: dict[str, str] = {}
    if gpus := whole(row["gpu"], "gpu", 0, 1000):
        amounts[GPU] = str(gpus)
        if row["model"] not in _NOT_KNOWN and not label_value_problem(row["model"]):
            labels[_MODEL] = row["model"]
    return node_with(name, amounts, labels)
