"""Number of gangs that fit and that the scheduler does not place, because it places one pod after the other and moves none.

    python -m benchmarks.greedy [--gangs N]

For each kind of rule, drawn clusters of 3 to 5 nodes in two or three zones, and a gang of 3 to 5 pods. What fits is found by
trying every order and every node, with the rules of the documentation in plain Python.
"""

import argparse
import random
from collections.abc import Callable
from typing import Any

from tests.unit.scheduler.peer_reference import refusals
from tests.unit.scheduler.scenarios import Scenario, config_text

Raw = dict[str, Any]
CONFIG = config_text([["priority", "gang"], ["predicates", "nodeorder"]], ["enqueue", "allocate"])
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OWN = {"matchLabels": {"app": "g"}}


def _affinity(side: str, key: str, selector: Raw = OWN) -> Raw:
    return {side: {REQUIRED: [{"topologyKey": key, "labelSelector": selector}]}}


def _spread(key: str) -> Raw:
    rule = {"maxSkew": 1, "topologyKey": key, "labelSelector": OWN}
    return {"topologySpreadConstraints": [rule | {"whenUnsatisfiable": "DoNotSchedule"}]}


CHIEF = {"matchLabels": {"role": "chief"}}
RULES: dict[str, Callable[[int], Raw]] = {
    "none": lambda _: {},
    "one zone": lambda _: {"affinity": _affinity("podAffinity", "zone")},
    "nodes of their own": lambda _: {"affinity": _affinity("podAntiAffinity", "host")},
    "one zone, nodes of their own": lambda _: {
        "affinity": _affinity("podAffinity", "zone") | _affinity("podAntiAffinity", "host")
    },
    "spread over zones": lambda _: _spread("zone"),
    "spread over zones and nodes": lambda _: {
        "topologySpreadConstraints": [
            *_spread("zone")["topologySpreadConstraints"],
            *_spread("host")["topologySpreadConstraints"],
        ]
    },
    "workers in the zone of a chief without rules": lambda index: (
        {"affinity": _affinity("podAffinity", "zone", CHIEF)} if index else {}
    ),
}


def cluster(dice: random.Random, rules: Callable[[int], Raw], *, equal: bool) -> Raw:
    """Nodes, and a gang whose pods take 1 cpu, or 1 or 2 each."""
    nodes = [
        [
            f"n{i}",
            dice.randint(1, 4),
            "64Gi",
            {"labels": {"host": f"n{i}", "zone": dice.choice("abc")}},
        ]
        for i in range(dice.randint(3, 5))
    ]
    count = dice.randint(3, 5)
    pods = []
    for index in range(count):
        labels = {"app": "g", "role": "chief" if index == 0 else "worker"}
        cpu = 1 if equal else dice.randint(1, 2)
        options = {"labels": labels, "spec": rules(index)}
        pods.append(["ns", f"g-{index}", "", "Pending", cpu, "1Gi", "g", options])
    return {"nodes": nodes, "podgroups": [["ns", "g", "default", count, "Inqueue"]], "pods": pods}


def fits(case: Raw, manifests: list[Raw]) -> bool:
    """True if some order of the pods and some choice of nodes place all pods."""
    nodes = {row[0]: row[3] for row in case["nodes"]}
    sizes = [row[4] for row in case["pods"]]
    kinds = [repr((row[4], row[7])) for row in case["pods"]]
    dead: set[Any] = set()

    def place(free: dict[str, int], where: tuple[str, ...]) -> bool:
        state = tuple(sorted(zip(kinds, where, strict=True)))
        if all(where):
            return True
        if state in dead:
            return False
        for manifest, name in zip(manifests, where, strict=True):
            manifest["spec"]["nodeName"] = name
        open_kinds = {kinds[i]: i for i, name in enumerate(where) if not name}
        for index in open_kinds.values():
            refused = refusals(manifests[index], nodes, manifests, {})
            for name, reason in refused.items():
                if not reason and free[name] >= sizes[index]:
                    left = free | {name: free[name] - sizes[index]}
                    if place(left, (*where[:index], name, *where[index + 1 :])):
                        return True
                    for manifest, back in zip(manifests, where, strict=True):
                        manifest["spec"]["nodeName"] = back
        dead.add(state)
        return False

    return place({row[0]: row[1] for row in case["nodes"]}, ("",) * len(sizes))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gangs", type=int, default=500, help="gangs of each kind")
    options = parser.parse_args()
    print(f"{'rules of the pods':<46} {'requests':>9} {'fit':>6} {'placed':>7} {'lost':>5}")
    for name, rules in RULES.items():
        for equal, words in ((True, "equal"), (False, "unequal")):
            dice = random.Random(name)
            fit = placed = 0
            for _ in range(options.gangs):
                case = cluster(dice, rules, equal=equal)
                scenario = Scenario(case, CONFIG)
                is_placed = bool(scenario.cycle().binds)
                placed += is_placed
                fit += is_placed or fits(case, list(scenario.pods.values()))
            print(f"{name:<46} {words:>9} {fit:>6} {placed:>7} {fit - placed:>5}")


if __name__ == "__main__":
    main()
