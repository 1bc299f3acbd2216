"""Events around pods that depend on other pods and on claims: no gang waits for what it could have, and nothing is left of the past.

Three schedulers see the same cluster change: one lives and passes over gangs that nothing could have helped, one lives and tries
every gang in each cycle, and one is started again when nothing is under way. They must place the same pods.
"""

import random
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from pumice.api.nodes import Namespace
from pumice.api.pods import Pod
from pumice.api.volumes import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from pumice.scheduler import ClusterState
from pumice.scheduler.model.tasks import SchedulingStatus
from tests.unit.scheduler.columns import dump
from tests.unit.scheduler.scenarios import NOW, Scenario, config_text, node, pod_group, pod_manifest
from tests.unit.scheduler.test_volume_choices import assert_counts_are_right
from tests.unit.scheduler.volume_scenarios import DISK, claim, storage_classes, volume

Raw = dict[str, Any]

CONFIG = config_text([["gang"], ["predicates", "nodeorder"]])
OF_TEAM = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
A, B = ({"labelSelector": {"matchLabels": {"app": app}}} for app in "ab")
TERMS: list[Raw] = [
    {"topologyKey": "zone", **A},
    {"topologyKey": "host", **A, **OF_TEAM},
    {"topologyKey": "host", **B, "namespaceSelector": {}},
]
CLAIMS: Raw = {
    "l0": {"class": "local"},
    "l1": {"class": "local", "size": 15},
    "s0": {"class": "share"},
    "a0": {"class": "any"},
    "x0": {"class": "any", "accessModes": ["ReadWriteOncePod"]},
}
VOLUMES: dict[str, list[Any]] = {
    "v1": ["local", 10, "n1"],
    "v2": ["local", 20, "n2"],
    "v3": ["share", 10],
}


def _put(state: ClusterState, kind: str, manifest: Any) -> None:
    match kind:
        case "node":
            state.set_node(node(manifest))
        case "group":
            state.set_pod_group(pod_group(manifest))
        case "namespace":
            state.set_namespace(msgspec.convert(manifest, Namespace))
        case "pod":
            state.set_pod(msgspec.convert(manifest, Pod))
        case "claim":
            state.set_claim(msgspec.convert(manifest, PersistentVolumeClaim))
        case "volume":
            state.set_volume(msgspec.convert(manifest, PersistentVolume))
        case "class":
            state.set_storage_class(msgspec.convert(manifest, StorageClass))
        case "limits":
            state.set_csi_node(msgspec.convert(manifest, CsiNode))


def _drop(state: ClusterState, kind: str, name: str) -> None:
    match kind:
        case "node":
            state.remove_node(name)
        case "namespace":
            state.remove_namespace(name)
        case "pod":
            state.remove_pod("ns", name)
        case "claim":
            state.remove_claim("ns", name)
        case "volume":
            state.remove_volume(name)
        case "class":
            state.remove_storage_class(name)
        case "limits":
            state.remove_csi_node(name)


class History:
    """A cluster, its two schedulers that live, and what happens."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.thrifty, self.eager = Scenario({}, CONFIG), Scenario({}, CONFIG)
        self.uids = 0
        self.now = NOW
        self.objects: dict[str, dict[str, Any]] = {"claim": {}, "volume": {}, "class": {}}
        for name in (each for each in storage_classes() if self.dice.random() < 0.7):
            self.add_class(name)
        self.put("namespace", "ns", {"metadata": {"name": "ns", "labels": {"team": "x"}}})
        for name in ("n1", "n2", "n3"):
            self.add_node(name)
        for name in (each for each in VOLUMES if self.dice.random() < 0.5):
            self.add_volume(name)
        for name in (each for each in CLAIMS if self.dice.random() < 0.5):
            self.add_claim(name)
        for _ in range(3):
            self.add_gang()

    def uid(self) -> str:
        self.uids += 1
        return f"u{self.uids}"

    def put(self, kind: str, name: str, manifest: Any) -> None:
        known = self.objects.setdefault(kind, {}).get(name)
        if isinstance(known, dict) and known["metadata"].get("uid") != manifest["metadata"].get("uid"):  # fmt: skip
            self.drop(kind, name)
        self.objects[kind][name] = deepcopy(manifest)
        for scenario in (self.thrifty, self.eager):
            _put(scenario.state, kind, manifest)

    def drop(self, kind: str, name: str) -> None:
        if self.objects[kind].pop(name, None) is not None:
            for scenario in (self.thrifty, self.eager):
                _drop(scenario.state, kind, name)

    def some(self, kind: str) -> tuple[str, Any]:
        """A copy of one object of a kind, the first ones where there are none."""
        known = self.objects[kind]
        name = self.dice.choice(sorted(known)) if known else ""
        return name, deepcopy(known.get(name))

    # -- what happens --------------------------------------------------------------------------

    def add_node(self, name: str) -> None:
        labels = {"host": name, "kubernetes.io/hostname": name, "zone": self.dice.choice("ab")}
        self.put("node", name, [name, self.dice.randint(2, 8), "32Gi", {"labels": labels}])

    def add_volume(self, name: str) -> None:
        manifest = volume(*VOLUMES[name])
        manifest["metadata"] = {"name": name, "uid": self.uid()}
        self.put("volume", name, manifest)

    def add_claim(self, name: str) -> None:
        manifest = claim(name, CLAIMS[name])
        manifest["metadata"]["uid"] = self.uid()
        self.put("claim", name, manifest)

    def add_class(self, name: str) -> None:
        self.put("class", name, {"metadata": {"name": name}, **storage_classes()[name]})

    def add_gang(self) -> None:
        dice, name, count = self.dice, f"g{self.uids}", self.dice.randint(1, 3)
        self.put("group", name, ["ns", name, "default", dice.randint(1, count), "Inqueue"])
        spec: Raw = {}
        if dice.random() < 0.5:
            side = dice.choice(["podAffinity", "podAntiAffinity"])
            needed = {"requiredDuringSchedulingIgnoredDuringExecution": [dice.choice(TERMS)]}
            spec["affinity"] = {side: needed}
        if dice.random() < 0.3:
            rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **A}
            spec["topologySpreadConstraints"] = [rule]
        labels = {"app": dice.choice("ab")}
        for index in range(count):
            claims = dice.sample(sorted(CLAIMS), dice.choice([0, 1, 1, 2]))
            mounted = [
                {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims
            ]
            options = {"labels": labels, "spec": {**spec, "volumes": mounted}, "uid": self.uid()}
            row = ["ns", f"{name}-{index}", "", "Pending", dice.randint(1, 2), "1Gi", name, options]
            self.put("pod", f"{name}-{index}", pod_manifest(row))

    def happen(self) -> None:
        """One event."""
        dice = self.dice
        kind, (name, found) = "pod", self.some("pod")
        match dice.randrange(19):
            case 0:
                self.add_gang()
            case 1 | 2:
                self.add_node(dice.choice(["n1", "n2", "n3", "n4"]))
            case 3:
                self.drop("node", self.some("node")[0])
            case 4:
                labels = {"team": dice.choice("xy")}
                self.put("namespace", "ns", {"metadata": {"name": "ns", "labels": labels}})
            case 5 | 6 if found:
                found["metadata"]["labels"] = {"app": dice.choice("ab")}
                self.put(kind, name, found)
            case 7 | 8 if found:
                self.drop(kind, name)
            case 9 if found and found["spec"].get("nodeName"):
                found["status"]["phase"] = "Succeeded"
                self.put(kind, name, found)
            case 10 if found and not found["spec"].get("nodeName"):  # by another scheduler
                found["spec"]["nodeName"], found["status"]["phase"] = "n1", "Running"
                self.put(kind, name, found)
            case 11 if found:
                self.refuse(f"ns/{name}")
            case 12 | 16:
                self.change("claim", CLAIMS, self.add_claim)
            case 13 | 17:
                self.change("volume", VOLUMES, self.add_volume)
            case 14 | 18:
                self.change("class", storage_classes(), self.add_class)
            case 15:
                driver = {"name": DISK, "allocatable": {"count": dice.randint(0, 2)}}
                manifest = {"metadata": {"name": "n2"}, "spec": {"drivers": [driver]}}
                self.put("limits", "n2", manifest)

    def change(self, kind: str, all_names: Iterable[str], add: Callable[[str], None]) -> None:
        """An object comes if it is not there, and goes if it is."""
        name = self.dice.choice(sorted(all_names))
        if name in self.objects[kind]:
            self.drop(kind, name)
        else:
            add(name)

    def refuse(self, key: str) -> None:
        """The API server refuses what is assumed of a pod."""
        for scenario in (self.thrifty, self.eager):
            if key in scenario.state.tasks:
                scenario.state.pods.forget(key, scenario.state.tasks[key].uid)

    def show(self) -> None:
        """The API server shows what is assumed, as far as it can still be done."""
        state = self.thrifty.state
        for name, manifest in sorted(self.objects["pod"].items()):
            task = state.tasks[f"ns/{name}"]
            if task.status is not SchedulingStatus.BINDING or manifest["spec"].get("nodeName"):
                continue
            claims = [self.objects["claim"].get(key[3:]) for key in task.shape.claims]
            chosen = state.claims.choices.of(task.shape.claims)
            if all(
                each is not None
                and (each["spec"]["volumeName"] or f"ns/{each['metadata']['name']}" in chosen)
                for each in claims
            ) and all(each.volume in ("", *self.objects["volume"]) for each in chosen.values()):
                for key, choice in sorted(chosen.items()):
                    self.bind(key[3:], choice.volume)
                shown = deepcopy(manifest)
                shown["spec"]["nodeName"], shown["status"]["phase"] = task.node, "Running"
                self.put("pod", name, shown)
            else:
                self.refuse(task.key)

    def bind(self, name: str, chosen: str) -> None:
        """Bind a claim, to a volume that is made for it where none was chosen."""
        found = deepcopy(self.objects["claim"][name])
        owner = {"namespace": "ns", "name": name, "uid": found["metadata"]["uid"]}
        target = chosen or f"pv-{owner['uid']}"
        manifest = deepcopy(self.objects["volume"].get(target)) or {
            **volume("any", 20, "", {"csi": {"driver": DISK, "volumeHandle": target}}),
            "metadata": {"name": target, "uid": self.uid()},
        }
        manifest["spec"]["claimRef"], manifest["status"] = owner, {"phase": "Bound"}
        self.put("volume", target, manifest)
        found["spec"]["volumeName"], found["status"] = target, {"phase": "Bound"}
        self.put("claim", name, found)

    # -- what must hold ------------------------------------------------------------------------

    def again(self) -> Scenario:
        """A scheduler that starts now; what is listed comes in any order."""
        scenario = Scenario({}, CONFIG)
        for kind in ("class", "limits", "claim", "volume", "namespace", "node", "group", "pod"):
            listed = list(self.objects.get(kind, {}).values())
            self.dice.shuffle(listed)
            for manifest in listed:
                _put(scenario.state, kind, deepcopy(manifest))
        return scenario

    def cycle(self, *, is_calm: bool) -> None:
        """One cycle of each; with a new one if nothing is under way."""
        again = self.again() if is_calm else None
        if again is not None:
            assert dump(self.thrifty.state)["peers"] == dump(again.state)["peers"]
        self.eager.wake_all()
        self.now += 2.0
        for scenario in (self.thrifty, self.eager):
            scenario.state.settled = None
        binds = self.thrifty.cycle(self.now).binds
        assert self.eager.cycle(self.now).binds == binds
        if again is not None:
            assert again.cycle(self.now).binds == binds
        assert_counts_are_right(self.thrifty)


@pytest.mark.parametrize("seed", range(16))
def test_whatever_happens_what_can_be_placed_is_placed(seed: int) -> None:
    history = History(seed)
    history.cycle(is_calm=True)
    for _ in range(25):
        for _ in range(history.dice.choice([1, 1, 1, 3])):
            history.happen()
            assert_counts_are_right(history.thrifty)
        is_calm = history.dice.random() < 0.7
        if is_calm:
            history.show()
        history.cycle(is_calm=is_calm)
