"""Whatever the objects of other users say, a gang that fits is placed in the same cycle.

PodGroups, Queues, pods and their annotations are written by users; the API server checks little of their annotations, and
the webhook may have been off.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api import keys
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.quantities import QuantityError
from pumice.api.queues import Queue
from tests.fuzz.mutations import NUMBERS
from tests.unit.scheduler.scenarios import Raw, Scenario, config_text, pod_group

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
SHARES = ("", "proportion", "capacity", "drf")
PLUGINS = (
    "priority", "gang", "conformance", "sla", "tdm", "pdb", "task-topology", "overcommit", "predicates", "nodeorder", "binpack",
    "resourcequota",
)  # fmt: skip
AMOUNTS = st.sampled_from(
    ["9e30", "-9e30", "1e-30", "9E", "-1", 2**63 - 1, -(2**63), 0, 1, "1e999999999"]
)
INTEGERS = st.sampled_from([each for each in NUMBERS if isinstance(each, int)])
ANNOTATIONS = (
    keys.TASK_PRIORITY, keys.TASK_SPEC, keys.TASK_INDEX, keys.JOB_VERSION, keys.PREEMPTABLE, keys.REVOCABLE_ZONE, keys.COOLDOWN_TIME,
    keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE, keys.SLA_WAITING_TIME, keys.HIERARCHY, keys.HIERARCHY_WEIGHTS,
    keys.TOPOLOGY_AFFINITY, keys.TOPOLOGY_ANTI_AFFINITY, keys.TOPOLOGY_TASK_ORDER, keys.TOPOLOGY_JSON, keys.NODE_GROUP_LIMITS,
    keys.QUEUE_ALLOCATION_GATE,
)  # fmt: skip
TEXT = st.sampled_from([
    "9" * 30, "-" + "9" * 30, "9" * 5_000, "0" * 5_000, "1e999", "NaN", "9" * 9 + "%", "9" * 30 + "%", "9999h", "2s", "true", "*", "",
    "/a" * 5_000, "a," * 5_000, "a;" * 5_000, "1/" * 5_000, "[" * 5_000, '{"affinity": [["a"]]}', '{"cpu": "9e30"}', "hostile",
])  # fmt: skip
MANY = st.sampled_from([1, 1, 3_000])
RESOURCES = st.one_of(
    st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "example.com/gpu"]), AMOUNTS),
    st.builds(lambda count: {f"example.com/r{each}": 1 for each in range(count)}, MANY),
)


@st.composite
def affinities(draw: st.DrawFn) -> Raw:
    """Rules of a pod, in less than the 1.5 MiB that an API server stores."""
    count, operator = (
        draw(MANY),
        draw(st.sampled_from(["Gt", "Lt", "In", "NotIn", "Exists", "DoesNotExist"])),
    )
    values = [draw(TEXT)] if count == 1 else ["7"]
    absent = [{"key": f"k{each}", "operator": operator, "values": values} for each in range(count)]
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": absent}}
    short = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"k": "7"}}}
    hard, soft = (
        f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
    )
    return draw(st.sampled_from([
        {"nodeAffinity": {hard: {"nodeSelectorTerms": [{"matchExpressions": absent}]}}},
        {"nodeAffinity": {soft: [{"weight": draw(INTEGERS), "preference": {"matchExpressions": absent}}]}},
        {"podAffinity": {hard: [term]}},
        {"podAntiAffinity": {hard: [short] * count}},
        {"podAntiAffinity": {soft: [{"weight": 100, "podAffinityTerm": term}]}},
    ]))  # fmt: skip


@st.composite
def objects(draw: st.DrawFn) -> tuple[Raw, Raw, Raw]:
    """A Queue, a PodGroup and a pod."""
    queue = {
        "weight": draw(INTEGERS),
        "priority": draw(INTEGERS),
        "capability": draw(RESOURCES),
        "deserved": draw(RESOURCES),
        "guarantee": {"resource": draw(RESOURCES)},
        "parent": draw(st.sampled_from(["", "root", "hostile", "default"])),
    }
    group = {
        "queue": draw(st.sampled_from(["hostile", "default"])),
        "minMember": draw(INTEGERS),
        "minResources": draw(RESOURCES),
        "minTaskMember": {"a": draw(INTEGERS)},
    }
    pod = {
        "schedulerName": "volcano",
        "priority": draw(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))),
        "nodeName": draw(st.sampled_from(["", "n2"])),
        "containers": [{"name": "c", "resources": {"requests": draw(RESOURCES)}}],
        "affinity": draw(affinities()),
    }
    annotations = draw(st.dictionaries(st.sampled_from(ANNOTATIONS), TEXT))
    named = {"namespace": "ns", "name": "hostile", "uid": "hostile", "annotations": annotations}
    phase = draw(st.sampled_from(["Pending", "Running"]))
    member = named | {"annotations": annotations | {keys.GROUP_NAME: "hostile"}}
    return (
        {"metadata": named | {"namespace": ""}, "spec": queue},
        {"metadata": named, "spec": group, "status": {"phase": draw(st.sampled_from(["Inqueue", "Running", ""]))}},
        {"metadata": member, "spec": pod, "status": {"phase": phase}},
    )  # fmt: skip


@settings(deadline=None)
@given(objects(), st.sampled_from(SHARES))
def test_nothing_fails_and_a_gang_that_fits_is_placed_whatever_others_ask_for(
    made: tuple[Raw, ...], share: str
) -> None:
    cluster = {
        "nodes": [["n1", 4, "8Gi", {"labels": {"kubernetes.io/hostname": "n1"}}], ["n2", 4, "8Gi"]],
        "queues": [["default", {}], ["research", {}]],
    }
    plugins = [[*PLUGINS, *([share, "nodegroup"] if share else [])]]
    scenario = Scenario(cluster, config_text(plugins, ACTIONS))
    state = scenario.state
    readers: tuple[tuple[type[Any], Callable[[Any], bool]], ...] = (
        (Queue, state.set_queue),
        (PodGroup, state.set_pod_group),
        (Pod, state.set_pod),
    )
    for obj, (type_, put) in zip(made, readers, strict=True):
        # The first is of an object that no watch cache takes, the second is what the scheduler reports.
        with suppress(msgspec.ValidationError, QuantityError):
            put(msgspec.convert(obj, type_))
    scenario.cycle()
    state.set_pod_group(pod_group(["ns", "g", "research", 1, "Inqueue"]))
    scenario.add_pod(["ns", "p", "", "Pending", 1, "1Gi", "g", {"resources": {"other.com/x": 0}}])
    result = scenario.cycle()
    assert (
        share or "ns/p" in result.binds or "ns/p" in result.pipelined
    )  # a queue may be left no share
