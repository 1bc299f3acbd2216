"""Clusters in which gangs wait for all kinds of reasons, and what happens to them: for the property of the waiting line."""

from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

from pumice.api.budgets import PodDisruptionBudget, ResourceQuota
from pumice.api.meta import ObjectMeta
from pumice.api.nodes import Namespace, PriorityClass
from pumice.api.volumes import PersistentVolume, PersistentVolumeClaim
from tests.unit.scheduler.scenarios import Scenario, config_text, node, pod_group, queue

Raw = dict[str, Any]
Event = tuple[str, Any]

QUEUES = st.sampled_from(["default", "a", "b"])
CORES = st.sampled_from(["1", "1", "500m", "2", "3"])
PRIORITIES = st.sampled_from(["low", "low", "high"])
ZONE = "topology.kubernetes.io/zone"


@dataclass
class History:
    """A cluster, its configuration, and what happens.

    Attributes:
        cluster: The objects at the beginning.
        config: The configuration's text.
        events: Kind and row of each event.
    """

    cluster: Raw
    config: str
    events: list[Event]


@st.composite
def hosts(draw: st.DrawFn, name: str) -> list[Any]:
    """A node as it is, or as it becomes."""
    zone = draw(st.sampled_from(["x", "y"]))
    options: Raw = {"pods": draw(st.sampled_from([3, 110, 110]))}
    options["labels"] = {"pool": draw(st.sampled_from(["a", "a", "b"])), ZONE: zone}
    if draw(st.integers(0, 5)) == 0:
        options["taints"] = [{"key": "t", "effect": "NoSchedule"}]
    options["unschedulable"] = draw(st.integers(0, 5)) == 0
    options["ready"] = draw(st.integers(0, 5)) > 0
    if draw(st.integers(0, 3)) == 0:
        options["resources"] = {"example.com/gpu": 1}
    return [name, draw(st.integers(1, 5)), draw(st.sampled_from(["4Gi", "8Gi"])), options]


@st.composite
def shares(draw: st.DrawFn, name: str) -> list[Any]:
    """A queue with some of its limits."""
    spec: Raw = {"weight": draw(st.integers(1, 3)), "reclaimable": draw(st.booleans())}
    for field in ("capability", "deserved"):
        if draw(st.integers(0, 2)) == 0:
            spec[field] = {"cpu": draw(st.integers(1, 6))}
    if draw(st.integers(0, 4)) == 0:
        spec["guarantee"] = {"resource": {"cpu": draw(st.integers(1, 2))}}
    if draw(st.integers(0, 6)) == 0:
        spec["dequeueStrategy"] = "fifo"
    if draw(st.integers(0, 9)) == 0:
        spec["state"] = "Closed"
    return [name, spec]


@st.composite
def pods_of(draw: st.DrawFn, gang: str, count: int, places: list[str]) -> list[list[Any]]:
    """Pods of a gang, alike or not, on nodes if there are any."""
    kinds = [draw(kinds_of_pods(gang)) for _ in range(draw(st.integers(1, 2)))]
    rows = []
    for number in range(count):
        cpu, memory, options = draw(st.sampled_from(kinds))
        place = draw(st.sampled_from(places)) if places else ""
        phase = "Running" if place else "Pending"
        if not place and draw(st.integers(0, 14)) == 0:
            options = options | {"gates": ["hold"]}
        rows.append(["ns", f"{gang}-{number}", place, phase, cpu, memory, gang, options])
    return rows


@st.composite
def kinds_of_pods(draw: st.DrawFn, gang: str) -> tuple[str, str, Raw]:
    """What pods ask for."""
    options: Raw = {"labels": {"app": draw(st.sampled_from(["one", "two"]))}}
    options["preemptable"] = draw(st.integers(0, 2)) > 0
    if draw(st.integers(0, 3)) == 0:
        options["selector"] = {"pool": draw(st.sampled_from(["a", "b"]))}
    if draw(st.integers(0, 3)) == 0:
        options["tolerations"] = [{"key": "t", "operator": "Exists"}]
    if draw(st.integers(0, 7)) == 0:
        options["ports"] = [80]
    rule = draw(st.integers(0, 11))
    term = {"labelSelector": {"matchLabels": {"app": "one"}}, "topologyKey": ZONE}
    if rule == 0:
        kept_apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        options["affinity"] = {
            draw(st.sampled_from(["podAffinity", "podAntiAffinity"])): kept_apart
        }
    elif rule == 1:
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"} | term
        options["spec"] = {"topologySpreadConstraints": [spread]}
    return draw(CORES), draw(st.sampled_from(["1Gi", "1Gi", "3Gi"])), options


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Pods that run, gangs that are in their queue or want to enter, and what becomes of them."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    groups, pods = [], []
    for number in range(draw(st.integers(0, 3))):
        name = f"r{number}"
        groups.append(["ns", name, draw(QUEUES), 1, "Running", {"prio": draw(PRIORITIES)}])
        pods += draw(pods_of(name, draw(st.integers(1, 3)), names))
    running = list(pods)
    waiting: list[list[Any]] = []
    for number in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, 4))
        enters = draw(st.integers(0, 2)) == 0
        options: Raw = {"prio": draw(PRIORITIES)}
        if enters or draw(st.booleans()):
            options["minRes"] = {"cpu": draw(CORES)}
        minimum, phase = draw(st.integers(1, count)), "Pending" if enters else "Inqueue"
        waiting.append(["ns", f"g{number}", draw(QUEUES), minimum, phase, options])
        if not enters:
            pods += draw(pods_of(f"g{number}", count, []))
    cluster = {
        "classes": {"low": 1, "high": 2},
        "nodes": [draw(hosts(name)) for name in names],
        "queues": [draw(shares(name)) for name in ("default", "a", "b")],
        "podgroups": [*groups, *waiting],
        "pods": pods,
    }
    return History(cluster, draw(configs()), draw(events(names, running, pods, waiting)))


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A configuration; shares, the gate and victims may be left out, and the plugin that does not last."""
    sharing = draw(
        st.sampled_from(
            [
                ["overcommit", "proportion"],
                ["overcommit", "capacity"],
                ["resourcequota", "proportion"],
                ["drf"],
                [],
            ]
        )
    )
    actions = ["enqueue", "allocate", "backfill"]
    actions += draw(st.sampled_from([[], ["preempt", "reclaim"]]))
    judges = ["priority", "gang", "conformance", *draw(st.sampled_from([[], [], ["pdb"]]))]
    return config_text([judges, [*sharing, "predicates", "nodeorder"]], actions)


@st.composite
def events(
    draw: st.DrawFn, names: list[str], running: list[Any], pods: list[Any], waiting: list[Any]
) -> list[Event]:
    """Events of each kind, in any order; a pod goes after it has begun to."""
    first: list[Event] = []
    later: list[Event] = []
    for row in running:
        what = draw(st.integers(0, 3))
        first += [("pod", [*row[:7], {**row[7], "deleting": True}])] if what == 1 else []
        later += [("pod gone", row)] if what in (1, 2) else []
    for row in pods:
        if "gates" in row[7]:
            first.append(("pod", [*row[:7], {k: v for k, v in row[7].items() if k != "gates"}]))
        elif draw(st.integers(0, 9)) == 0:
            relabelled = {**row[7], "labels": {"app": "one"}, "preemptable": True}
            first.append(("pod", [*row[:7], relabelled]))
    for row in waiting:
        if draw(st.integers(0, 4)) == 0:
            first.append(("group", [*row[:3], max(1, row[3] - 1), *row[4:]]))
        elif draw(st.integers(0, 9)) == 0:
            later.append(("group gone", row))
    for _ in range(draw(st.integers(0, 3))):
        first.append(("node", draw(hosts(draw(st.sampled_from([*names, "n8"]))))))
    if draw(st.integers(0, 4)) == 0:
        first.append(("node gone", [draw(st.sampled_from(names))]))
    first += [("queue", draw(shares(draw(QUEUES)))) for _ in range(draw(st.integers(0, 1)))]
    quota = {"spec": {"hard": {"requests.cpu": draw(st.integers(0, 4))}}}
    first += [("quota", ["q", quota])] if draw(st.integers(0, 3)) == 0 else []
    first += [("namespace", ["ns", {"team": "a"}])] if draw(st.integers(0, 5)) == 0 else []
    budget: Raw = {"spec": {"selector": {"matchLabels": {"app": "one"}}}}
    budget |= {"status": {"disruptionsAllowed": draw(st.integers(0, 1)), "expectedPods": 2}}
    first += [("budget", ["p", budget])] if draw(st.integers(0, 3)) == 0 else []
    first += [("class", ["low", 3])] if draw(st.integers(0, 6)) == 0 else []
    return [*draw(st.permutations(first)), *draw(st.permutations(later))]


def happen(scenario: Scenario, kind: str, row: Any) -> None:
    """Let an event happen."""
    state = scenario.state
    match kind:
        case "pod":
            task = state.tasks.get(f"{row[0]}/{row[1]}")
            place = task.node if task is not None else row[2]
            scenario.add_pod([*row[:2], place, "Running" if place else row[3], *row[4:]])
        case "pod gone":
            state.remove_pod(*row[:2])
            scenario.pods.pop(f"{row[0]}/{row[1]}", None)
        case "node":
            state.set_node(node(row))
        case "node gone":
            state.remove_node(row[0])
        case "queue":
            state.set_queue(queue(row))
        case "group":
            status = state.gangs.statuses.get(f"{row[0]}/{row[1]}")
            phase = status.phase if status is not None else row[4]
            state.set_pod_group(pod_group([*row[:4], phase, *row[5:]]))
        case "group gone":
            state.remove_pod_group(*row[:2])
        case "quota":
            state.set_quota(_object(row, ResourceQuota))
        case "claim":
            state.set_claim(_object(row, PersistentVolumeClaim))
        case "volume":
            manifest = {"metadata": {"name": row[0]}, **row[1]}
            state.set_volume(msgspec.convert(manifest, PersistentVolume))
        case "namespace":
            state.set_namespace(Namespace(metadata=ObjectMeta(name=row[0], labels=row[1])))
        case "budget":
            state.set_budget(_object(row, PodDisruptionBudget))
        case "class":
            manifest = {"metadata": {"name": row[0]}, "value": row[1]}
            state.set_priority_class(msgspec.convert(manifest, PriorityClass))
        case _:
            raise ValueError(kind)


def _object(row: Any, kind: Any) -> Any:
    return msgspec.convert({"metadata": {"name": row[0], "namespace": "ns"}, **row[1]}, kind)
