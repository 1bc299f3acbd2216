"""The largest objects that admission lets through, served to a component 250 times; and what the component then takes.

    python -m tests.support.large_objects COMPONENT URL

A process that holds the caches of a component, synced from an API server at a URL, with the scheduler's state fed from them. The
component then does its work once: the webhook reviews the Job, the controller makes its pods, and the scheduler runs a cycle over
them, with their gates and without. It prints its peak memory in bytes as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from pumice.api import keys, kinds
from pumice.api.kinds import Kind
from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cluster.cache import WatchCache, wait_synced
from pumice.cluster.client import Client
from pumice.cluster.clock import SystemClock
from pumice.cluster.connection import Connection, StaticCredentials
from pumice.controller.jobs.reconcile import reconcile
from pumice.controller.jobs.situation import Observed
from pumice.controller.plan import CreateObject
from pumice.controller.worker.controllers import MAKERS
from pumice.controller.worker.process import ControllerSettings, Watches
from pumice.plugins import builtin
from pumice.scheduler import ClusterState, load_config, run_cycle
from pumice.scheduler.worker.feeds import SchedulerCaches
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.server.lookup import CachedView
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit import builders

Raw = dict[str, Any]

NUMBER = 250
COMPONENTS = ("webhook", "controller", "scheduler")

_OWN = "~"
"""Stands for the number of an object."""


def template() -> Raw:
    """A pod template with much of everything, so large that one more kilobyte is not stored."""
    some = range(1200)
    expressions = [{"key": "zone", "operator": "In", "values": [f"zone-{each}" for each in some]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    selector = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": "zone"}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    ports = [{"containerPort": 1 + each, "hostPort": 1 + each} for each in some]
    main = {
        "name": "main",
        "image": "busybox",
        "env": [{"name": f"E{each}", "value": "x"} for each in range(20_000)],
        "ports": ports,
        "resources": {"requests": {"cpu": "1"}},
        "args": ["a" * 50_000],
    }
    return {
        "metadata": {
            "labels": {f"example.com/{'l' * 40}-{each}": "v" * 60 for each in range(256)},
            "annotations": {f"a{each}": "" for each in range(1000)} | {"note": "n" * 200_000},
        },
        "spec": {
            "containers": [main, *({"name": f"c{each}", "image": "busybox"} for each in some)],
            "nodeSelector": {f"example.com/l{each}": "v" for each in some},
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
                "podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": selector}]},
            },
            "tolerations": [{"key": f"k{each}", "operator": "Exists"} for each in range(3000)],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": f"k{each}", "whenUnsatisfiable": "ScheduleAnyway"}
                for each in range(200)
            ],
            "schedulingGates": [{"name": f"example.com/g{each}"} for each in some],
            "volumes": [
                *({"name": f"e{each}", "emptyDir": {}} for each in some),
                *(
                    {"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"c{each}"}}
                    for each in range(600)
                ),
            ],
        },
    }


def job(number: int = 0) -> Raw:
    """A Job with that template."""
    return {
        "metadata": _metadata(f"j{number}", number),
        "apiVersion": kinds.JOB.api_version,
        "kind": "Job",
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": 1,
            "tasks": [{"name": "t", "replicas": NUMBER, "template": template()}],
        },
    }


def pod() -> Raw:
    """The first of the pods of the first Job, as an API server stores it: with a volume of its own."""
    made = template()
    own = {
        keys.JOB_NAME: "j0",
        keys.TASK_INDEX: "0",
        keys.TASK_SPEC: "t",
        keys.GROUP_NAME: "j0-u0",
    }
    meta = _metadata("j0-t-0", 0)
    meta["labels"] = made["metadata"]["labels"] | own
    meta["annotations"] = made["metadata"]["annotations"] | own
    meta["ownerReferences"] = [
        {
            "apiVersion": kinds.JOB.api_version,
            "kind": "Job",
            "name": "j0",
            "uid": "u0",
            "controller": True,
        }
    ]
    spec = made["spec"]
    spec["volumes"].append({"name": "kube-api-access-0", "projected": {"sources": []}})
    status = {"phase": "Pending"}
    return {"metadata": meta, "spec": {"schedulerName": "volcano"} | spec, "status": status}


def _metadata(name: str, number: int) -> Raw:
    return {
        "name": name,
        "namespace": "default",
        "uid": f"u{number}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }


def lists(component: str) -> dict[Kind, Raw]:
    """Kinds of which a component watches 250 objects, with the first one of each."""
    made = job()
    large = made["spec"]["tasks"][0]["template"]
    if component == "scheduler":
        return {kinds.POD: pod(), kinds.POD_GROUP: _holder(large["metadata"], {})}
    if component == "controller":
        labels = {"labels": {keys.JOB_NAME: "j0"}}
        return {
            kinds.CONFIG_MAP: _holder(labels, {}, {"x": "y" * 900_000}),
            kinds.POD: pod(),
            kinds.JOB: made,
            kinds.POD_GROUP: _holder(large["metadata"], {}),
        }
    wired = deepcopy(large)
    wired["metadata"]["annotations"][keys.PLUGINS] = "svc"
    indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": wired}
    sets = {"replicatedJobs": [{"name": "r", "template": {"spec": indexed}}]}
    return {
        kinds.INDEXED_JOB: _holder({}, indexed),
        kinds.JOB_SET: _holder({}, sets),
        kinds.POD_GROUP: _holder(large["metadata"], {}),
    }


def _holder(metadata: Raw, spec: Raw, data: Raw | None = None) -> Raw:
    found = {"metadata": _metadata("o0", 0) | metadata, "spec": spec}
    return found if data is None else found | {"data": data}


class _Numbered:
    """The JSON of objects that differ in a few numbers.

    Args:
        first: The object with the number 0.
    """

    def __init__(self, first: Raw) -> None:
        text = json.dumps(first, separators=(",", ":"))
        name = first["metadata"]["name"].removesuffix("0")
        for before, after in (
            (f'"name":"{name}0"', f'"name":"{name}{_OWN}"'),
            ('"uid":"u0"', f'"uid":"u{_OWN}"'),
            ('"resourceVersion":"1"', f'"resourceVersion":"1{_OWN}"'),
        ):
            text = text.replace(before, after, 1)
        text = text.replace('index":"0"', f'index":"{_OWN}"')
        text = text.replace("kube-api-access-0", f"kube-api-access-{_OWN}")
        self._parts = text.encode().split(_OWN.encode())

    def __getitem__(self, number: int) -> bytes:
        return str(number).encode().join(self._parts)


async def server(component: str) -> tuple[web.AppRunner, str]:
    """An API server that lists 250 of each of these objects, makes each of them when it is asked for, and whose watches are silent."""
    objects = {kind.collection(None): _Numbered(obj) for kind, obj in lists(component).items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        if request.query.get("watch"):
            await response.prepare(request)
            await asyncio.sleep(3600)
        begin, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 0))
        found = objects.get(request.path)
        end = min(NUMBER, begin + (limit or NUMBER)) if found else 0
        more = str(end) if 0 < end < NUMBER else ""
        await response.prepare(request)
        head = {"resourceVersion": "10000", "continue": more}
        await response.write(f'{{"metadata":{json.dumps(head)},"items":['.encode())
        with suppress(ConnectionError):  # of a page that is too large the rest is not read
            for number in range(begin, end):
                assert found is not None
                if number > begin:
                    await response.write(b",")
                await response.write(found[number])
            await response.write(b"]}")
        return response

    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


async def hold(component: str, url: str) -> dict[str, Any]:
    """Sync the caches of a component, and measure."""
    client = Client(Connection(server=url, credentials=StaticCredentials()))
    caches: tuple[WatchCache[Any], ...]
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        before = _peak()
        feeds = None
        if component == "scheduler":
            feeds = SchedulerCaches(client)
            caches = feeds.all
        elif component == "controller":
            watches = Watches(client)
            for make in MAKERS.values():
                make(watches, ControllerSettings(), builtin())
            caches = (*watches.required, *watches.optional)
        else:
            caches = CachedView(client).caches
        tasks = [asyncio.create_task(cache.run()) for cache in caches]
        stack.callback(lambda: [task.cancel() for task in tasks])
        await wait_synced(*caches)
        state = ClusterState()
        if feeds is not None:
            await stack.enter_async_context(feeds.feeding(state, asyncio.Event(), SystemClock()))
            assert len(state.tasks) == NUMBER
        held = {cache.kind.plural: len(cache) for cache in caches if len(cache)}
        done: dict[str, Callable[[], int]] = {
            "webhook": _review,
            "controller": _make_pods,
            "scheduler": partial(_run, state),
        }
        return {"before": before, "held": held, "done": done[component](), "peak": _peak()}


def _review() -> int:
    """Review the Job a few times, as several users would send it; how often it was admitted."""
    admission = Admission(AdmissionSettings(), Snapshot.of([builders.queue()]), builtin())
    made = job()
    del made["metadata"]["resourceVersion"]
    return sum(not judge(admission, made).errors for _ in range(8))


def _make_pods() -> int:
    """Make all pods of the Job and encode each, as a pass of the controller does; how many."""
    owner = pod()["metadata"]["ownerReferences"]
    about = _metadata("j0-u0", 1) | {"ownerReferences": owner}
    group: Raw = {"apiVersion": kinds.POD_GROUP.api_version, "kind": kinds.POD_GROUP.kind}
    group |= {"metadata": about, "spec": {"minMember": 1}, "status": {"phase": "Inqueue"}}
    plan = reconcile(Observed(job=job(), group=group), registry=builtin(), now=0.0)
    pods = (
        step for step in plan.steps if isinstance(step, CreateObject) and step.kind == kinds.POD
    )
    return sum(len(msgspec.json.encode(each.manifest)) > 0 for each in pods)


def _run(state: ClusterState) -> int:
    """Run a cycle over the pods of the Job, and another one without their gates; how many pods the last one decided about."""
    state.set_queue(msgspec.convert(builders.queue(), Queue))
    state.set_node(msgspec.convert(builders.node("n", "1000"), Node))
    state.set_pod_group(msgspec.convert(builders.pod_group("j0-u0", phase="Inqueue"), PodGroup))
    config = load_config(None)
    run_cycle(state, config, 1.0)
    raw = pod()
    del raw["spec"]["schedulingGates"]
    pods = _Numbered(raw)
    for number in range(NUMBER):
        state.set_pod(msgspec.json.decode(pods[number], type=Pod))
    result = run_cycle(state, config, 2.0)
    assert result.error is None
    assert not result.errors
    return result.decided


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


if __name__ == "__main__":
    print(json.dumps(asyncio.run(hold(*sys.argv[1:3]))))
