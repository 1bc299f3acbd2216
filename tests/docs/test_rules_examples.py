"""The examples of rules break their rules, as far as they can be read as YAML.

An example is a piece of a manifest: `ports: [{containerPort: 70000}]`. It is put into a good object wherever
such a piece may stand, and its rule must speak at one of these places. Examples that tell of more than one object,
or leave something out, are for people only.
"""

import copy
import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pumice.api.keys import NAMESPACES
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.rules.catalogue import ALL
from pumice.webhook.rules.rule import Rule
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

Raw = dict[str, Any]

ELSEWHERE = (
    "…",
    " where ",
    " with ",
    " in a ",
    " beside ",
    " and node",
    " of a Job",
    " than the",
    "kubectl ",
)
"""Words of examples that no object alone can show."""

SITUATIONS = {
    "HN-DUPLICATE", "JOB-PODNAME-INDEX", "Q-DEPTH",  # told in words
    "JOB-QUEUE-UNKNOWN", "PG-QUEUE-UNKNOWN", "Q-PARENT-UNKNOWN",  # of a file without queues
    "Q-PARENT-BUSY", "Q-PARENT-GROUPS", "Q-ROOT-FROZEN",  # of a cluster with pods, and of an update
    "JOB-PLUGIN-HOSTNAME", "JOB-PLUGIN-OVERWRITTEN", "JOB-PLUGIN-SUBDOMAIN",  # parts of several places
    "TPL-LABEL-KEYS-TWICE", "TPL-PROFILE-MATCH", "TPL-DEVICE",
    "POD-PLUGINS-DOUBT", "POD-PLUGINS-FORM", "POD-PLUGINS-OWNER",  # of pods that other controllers make
    "POD-GATE-SCHEDULER", "POD-GROUP-SCHEDULER",
}  # fmt: skip
"""Codes whose examples need a situation that is not made here; their own tests make it."""

CONTAINER: Raw = {"name": "main", "image": "busybox"}
POD_SPEC: Raw = {"containers": [CONTAINER]}
TASK: Raw = {"name": "worker", "replicas": 2, "template": {"spec": POD_SPEC}}
JOB: Raw = {"tasks": [TASK], "queue": "default"}
DEFAULTS: dict[str, Raw] = {
    "tasks": TASK,
    "containers": CONTAINER,
    "initContainers": {"name": "init", "image": "busybox"},
    "topologySpreadConstraints": {
        "maxSkew": 1,
        "topologyKey": "a",
        "whenUnsatisfiable": "DoNotSchedule",
    },
    "policies": {},
    "flows": {},
    "members": {"type": "Node"},
}
"""What items of lists have when the example does not say otherwise."""

IN_POD = (
    "", "affinity", "securityContext", "volumes.0", "containers.0", "containers.0.securityContext",
    "topologySpreadConstraints.0", "topologySpreadConstraints.0.labelSelector",
)  # fmt: skip
IN_TASK = (
    "",
    "template",
    "template.metadata",
    *(f"template.spec.{each}".rstrip(".") for each in IN_POD),
)
IN_JOB = ("", "spec", *(f"spec.tasks.0.{each}".rstrip(".") for each in IN_TASK))
PLACES: dict[str, tuple[str, str, Raw, tuple[str, ...]]] = {
    "Job": ("batch.volcano.sh/v1alpha1", "train", JOB, IN_JOB),
    "Queue": ("scheduling.volcano.sh/v1beta1", "research", {}, ("", "metadata.annotations", "spec", "spec.affinity")),
    "PodGroup": (
        "scheduling.volcano.sh/v1beta1", "gang", {"minMember": 1},
        ("spec", "spec.subGroupPolicy.0"),
    ),
    "Pod": ("v1", "one", {**POD_SPEC, "schedulerName": "volcano"}, ("metadata", "metadata.annotations", "spec")),
    "CronJob": (
        "batch.volcano.sh/v1alpha1", "nightly", {"schedule": "@daily", "jobTemplate": {"spec": JOB}},
        ("", "spec"),
    ),
    "JobFlow": ("flow.volcano.sh/v1alpha1", "pipeline", {}, ("", "spec")),
    "HyperNode": (
        "topology.volcano.sh/v1alpha1", "rack-1",
        {"tier": 1, "members": [{"type": "Node", "selector": {}}]},
        ("", "spec", "spec.members.0", "spec.members.0.selector"),
    ),
}  # fmt: skip
CLUSTER_WIDE = {"Queue", "HyperNode"}
KINDS = {
    "Q": ("Queue",), "PG": ("PodGroup",), "POD": ("Pod", "Job"), "CRON": ("CronJob",), "FLOW": ("JobFlow",), "HN": ("HyperNode",),
}  # fmt: skip


def _queue(name: str, parent: str = "root", state: str = "Open", **annotations: str) -> Raw:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"weight": 1, "parent": parent},
        "status": {"state": state},
    }


STATE = [
    *(_queue(name) for name in ("default", "department")),
    *(_queue(name, "department") for name in ("team-a", "team-b")),
    *(_queue(name, state="Closed") for name in ("closed-for-maintenance", "closed-queue")),
    _queue("only-for-team-a", **{NAMESPACES: "team-a"}),
    {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack-2"},
        "spec": {"tier": 1, "tierName": "rack", "members": []},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high-priority"},
        "value": 1000,
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low-priority"},
        "value": 10,
    },
]


def read(example: str) -> Raw | None:
    """An example as a mapping; None for one that is for people only. What is in brackets is a remark."""
    example = re.sub(r" \(.*\)$", "", example)
    if any(word in example for word in ELSEWHERE):
        return None
    for text in (example, f"{{{example}}}"):
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError:
            continue
        if isinstance(found, dict):
            return found
    return None


def merged(base: Any, piece: Any, name: str = "", *, filled: bool = True) -> Any:
    """The base with the piece in it; items of its lists have what such items need, if they are filled."""
    if isinstance(piece, dict):
        known = base if isinstance(base, dict) else {}
        inner = {
            key: merged(known.get(key), value, key, filled=filled) for key, value in piece.items()
        }
        return known | inner
    if filled and isinstance(piece, list) and name in DEFAULTS:
        return [merged(copy.deepcopy(DEFAULTS[name]), item) for item in piece]
    return piece


def put(whole: Any, place: list[str], piece: Raw, *, filled: bool) -> Any:
    """The whole with the piece at a place, which is made where it is missing."""
    if not place:
        return merged(whole, piece, filled=filled)
    step, rest = place[0], place[1:]
    if step == "0":
        items = whole if isinstance(whole, list) and whole else [{"name": "one"}]
        return [put(items[0], rest, piece, filled=filled), *items[1:]]
    known = whole if isinstance(whole, dict) else {}
    inner = known.get(step)
    if inner is None and rest and rest[0] == "0" and step in DEFAULTS:
        inner = [copy.deepcopy(DEFAULTS[step])]
    return known | {step: put(inner, rest, piece, filled=filled)}


def objects(rule: Rule, piece: Raw) -> Iterator[Raw]:
    """Good objects of the kinds that a rule judges, each with the piece in it."""
    for kind in KINDS.get(rule.code.partition("-")[0], ("Job", "CronJob")):
        version, name, spec, places = PLACES[kind]
        home = {} if kind in CLUSTER_WIDE else {"namespace": "default"}
        meta = {"name": name} | home | piece.get("metadata", {})
        base = {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
        rest = {key: value for key, value in piece.items() if key != "metadata"}
        for place, filled in itertools.product(places, (True, False)):
            steps = place.split(".") if place else []
            yield put(copy.deepcopy(base), steps, rest, filled=filled)


READABLE = [
    (rule, piece)
    for rule in ALL
    if rule.code not in SITUATIONS and (piece := read(rule.example)) is not None
]


@pytest.mark.parametrize(("rule", "piece"), READABLE, ids=[rule.code for rule, _ in READABLE])
def test_an_example_breaks_its_rule(rule: Rule, piece: Raw) -> None:
    admission = Admission(AdmissionSettings(), Snapshot.of(STATE), builtin())
    told = set()
    for found in (judge(admission, each) for each in objects(rule, piece)):
        told |= {each.code for each in (*found.errors, *found.warnings)}
        if rule.code in told:
            return
    pytest.fail(f"{rule.example} breaks {sorted(told)}, not {rule.code}")


def test_most_examples_can_be_read() -> None:
    assert len(READABLE) > 0.7 * len(ALL)
