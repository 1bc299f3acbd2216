"""Scenarios in which nodes are reserved for a gang."""

from typing import Any

from pumice.api.meta import format_time
from pumice.scheduler import ClusterState, CycleResult
from tests.unit.scheduler.scenarios import (
    NOW,
    Scenario,
    config_text,
    pod_group,
)

TIMEOUT = 600


PLUGINS: list[dict[str, Any] | str] = ["priority", "gang", "reservation", "predicates"]


CONFIG = (
    config_text([PLUGINS], ["enqueue", "elect", "allocate", "reserve"])
    + f"configurations:\n- name: reserve\n  arguments: {{timeoutSeconds: {TIMEOUT}}}\n"
)


NODES: list[list[Any]] = [["n1", 4, "8Gi"], ["n2", 16, "64Gi"], ["n3", 8, "32Gi"]]


def busy(*nodes: str) -> dict[str, Any]:
    """A gang of pods that fill nodes, each of which leaves a node by itself."""
    sizes: dict[str, Any] = {name: cpu for name, cpu, _ in NODES}
    return {
        "podgroups": [["ns", "busy", "default", 1, "Running", {}]],
        "pods": [["ns", f"busy-{n}", n, "Running", sizes[n], "1Gi", "busy"] for n in nodes],
    }


def gang(name: str, size: int, cpu: int, **options: Any) -> dict[str, Any]:
    minimum = options.pop("minimum", size)
    return {
        "podgroups": [["ns", name, "default", minimum, "", options]],
        "pod_sets": [{"pg": name, "count": size, "cpu": cpu, "memory": "1Gi"}],
    }


def scenario_of(*parts: dict[str, Any], config: str = CONFIG, **more: Any) -> Scenario:
    joined: dict[str, Any] = {"nodes": NODES, **more}
    for part in parts:
        for key, rows in part.items():
            joined[key] = [*joined.get(key, []), *rows]
    return Scenario(joined, config)


def reserved(state: ClusterState) -> tuple[str, ...]:
    return state.reservation.nodes if state.reservation is not None else ()


def target_of(scenario: Scenario) -> str:
    return scenario.state.reservation.gang if scenario.state.reservation is not None else ""


def said(scenario: Scenario, key: str) -> tuple[str, str]:
    """Status and reason of the condition Reserved."""
    for each in scenario.state.gangs.statuses[key].conditions or ():
        if each.type == "Reserved":
            return each.status, each.reason
    return "", ""


def cycles(scenario: Scenario, count: int, start: float = NOW) -> list[CycleResult]:
    return [scenario.cycle(start + number) for number in range(count)]


def large_and_small(*, later: bool, is_large: bool = True) -> Scenario:
    """A large gang that waits for n3, and a small one that comes with it or when nodes are reserved."""
    small = gang("small", 1, 10, created="2024-01-02T00:00:00Z")
    large = [gang("large", 3, 8, created="2024-01-01T00:00:00Z")] if is_large else []
    scenario = scenario_of(busy("n3"), *large, *([] if later else [small]))
    if later:
        cycles(scenario, 3)
        scenario.state.set_pod_group(pod_group(small["podgroups"][0]))
        scenario.add_pod(["ns", "small-0", "", "Pending", 10, "1Gi", "small"])
    return scenario


def with_reserved(row: list[Any], nodes: list[str]) -> list[Any]:
    """A row of a PodGroup whose status says that nodes are reserved for it."""
    message = f"since {format_time(NOW)}: {', '.join(nodes)}"
    said = {"type": "Reserved", "status": "True", "reason": "NodesReserved", "message": message}
    options = row[5] if len(row) > 5 else {}
    return [*row[:5], options | {"conditions": [said]}]
