"""Short spellings of Jobs and pods, and the case tables of this folder."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.plugins import Raw, Wiring, builtin, task_and_index
from tests.kit import builders
from tests.kit.tables import table


def rows(name: str) -> list[Any]:
    """Rows of a case table, named after their ids."""
    return [pytest.param(row, id=row["id"]) for row in table(f"plugins/{name}")]


def task(name: str, replicas: int = 1, hostname: str = "", subdomain: str = "", **spec: Any) -> Raw:
    """A task as the case tables write one: name, replicas, hostname, subdomain."""
    if hostname:
        spec["hostname"] = hostname
    if subdomain:
        spec["subdomain"] = subdomain
    return builders.task(name, replicas, spec=spec)


def job(name: str, *tasks: Raw, **fields: Any) -> Job:
    """A Job; keyword arguments as for `tests.kit.builders.job`."""
    fields = {"namespace": "ns"} | fields
    return msgspec.convert(builders.job(name, list(tasks), **fields), Job)


def job_of(row: list[Any], plugins: dict[str, list[str]]) -> Job:
    """A Job as the case tables write one: its name, then its tasks."""
    name, *tasks = row
    return job(name, *(task(*each) for each in tasks), plugins=plugins)


def pod_of(name: str, task_name: str | None = None) -> Raw:
    """A pod with containers c0 and c1 and init container i0, as it is before wiring."""
    metadata: Raw = {"name": name, "namespace": "ns"}
    if task_name is not None:
        metadata["annotations"] = {"volcano.sh/task-spec": task_name}
    return {
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "c0"}, {"name": "c1"}],
            "initContainers": [{"name": "i0"}],
        },
    }


def wired(job: Job, pod: Raw, *, strict_upstream: bool = False) -> Raw:
    """The pod after all built-in plugins of its Job."""
    found, index = task_and_index(job, pod)
    return Wiring(job, builtin(), strict_upstream=strict_upstream).pod(found, index, pod)


def containers(pod: Raw) -> dict[str, Raw]:
    """Containers and init containers by name."""
    spec = pod["spec"]
    return {each["name"]: each for each in (*spec["containers"], *spec.get("initContainers", ()))}


def env(container: Raw) -> list[tuple[str, Any]]:
    """Variables of a container: name, and value or ConfigMap and key."""
    found = []
    for each in container.get("env", ()):
        reference = each.get("valueFrom", {}).get("configMapKeyRef")
        found.append(
            (each["name"], (reference["name"], reference["key"]) if reference else each["value"])
        )
    return found


def loses_nothing(before: Any, after: Any) -> bool:
    """Whether everything of one value is in the other, lists in the same order."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and loses_nothing(value, after[key]) for key, value in before.items()
        )
    if isinstance(before, list):
        rest = iter(after)
        return all(any(loses_nothing(each, found) for found in rest) for each in before)
    return bool(before == after)


def repeats(pod: Raw) -> list[str]:
    """What a pod holds twice."""
    spec = pod.get("spec", {})
    everywhere = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    keys = (
        ("env", "name"),
        ("volumeMounts", "mountPath"),
        ("ports", "containerPort"),
        ("ports", "name"),
    )
    lists = [(each.get(field, []), key) for each in everywhere for field, key in keys]
    lists += [(spec.get(field, []), "name") for field in ("volumes", "initContainers")]
    if spec.get("hostNetwork"):
        ports = [port for each in everywhere for port in each.get("ports", ())]
        lists.append((ports, "containerPort"))
    twice = []
    for entries, key in lists:
        found = [entry[key] for entry in entries if key in entry]
        twice += [name for name in found if found.count(name) > 1]
    return twice
