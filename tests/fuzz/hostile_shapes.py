"""Parts that hostile manifests are made of."""

from collections.abc import Callable
from typing import Any

Raw = dict[str, Any]
Maker = Callable[[int], Raw]
"""Makes an object with so many items."""


def task(number: int = 0, container: Raw | None = None, pod: Raw | None = None, **rest: Any) -> Raw:
    """A task with one container."""
    main = {"name": "main", "image": "i"} | (container or {})
    spec = {"containers": [main]} | (pod or {})
    return {"name": f"t{number}", "replicas": 1, "template": {"spec": spec}} | rest


def job(*tasks: Raw, metadata: Raw | None = None, **spec: Any) -> Raw:
    """A Job of these tasks."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "hostile", "namespace": "default"} | (metadata or {}),
        "spec": {"queue": "default", "minAvailable": 1, "schedulerName": "volcano"}
        | {"tasks": list(tasks) or [task()]}
        | spec,
    }


def of_container(field: str, item: Callable[[int], Any]) -> Callable[[int], Raw]:
    """Jobs with many items in a list of their container."""
    return lambda n: job(task(container={field: [item(i) for i in range(n)]}))


def of_pod(field: str, item: Callable[[int], Any]) -> Callable[[int], Raw]:
    """Jobs with many items in a list of their pod."""
    return lambda n: job(task(pod={field: [item(i) for i in range(n)]}))


def of_tasks(item: Callable[[int], Raw]) -> Callable[[int], Raw]:
    """Jobs with many tasks."""
    return lambda n: job(*(item(i) for i in range(n)))


def long_name(number: int) -> str:
    """A name as long as one may be; none is equal to another and all are alike."""
    return ("ab" * 127)[:240] + f"{number:x}"


def volumes(item: Callable[[int], Raw], mounts: Callable[[int], Raw]) -> Callable[[int], Raw]:
    """Jobs with many volumes and as many mounts."""
    return lambda n: job(
        task(
            container={"volumeMounts": [mounts(i) for i in range(n)]},
            pod={"volumes": [{"name": f"v{i}"} | item(i) for i in range(n)]},
        )
    )


def requirements(n: int) -> list[Raw]:
    """Requirements of a selector, each with a key that is none."""
    return [{"key": f"bad key {i}", "operator": "Inn", "values": ["a b"]} for i in range(n)]


def affinity(n: int) -> Raw:
    """Terms that pods like to be near to."""
    term = {"labelSelector": {"matchExpressions": requirements(2)}, "topologyKey": ""}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": requirements(1)} for _ in range(n)]
            }
        },
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * n},
    }


def amounts(n: int, value: Any = "1") -> Raw:
    """Resources nearly like those that there are."""
    return {f"memor{i:x}": value for i in range(n)}


def a_queue(**spec: Any) -> Raw:
    """A Queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "hostile"},
        "spec": {"weight": 1} | spec,
    }


def pod_group(**spec: Any) -> Raw:
    """A PodGroup."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "default"} | spec,
    }


def pod(**spec: Any) -> Raw:
    """A pod of the scheduler."""
    containers = [{"name": "main", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"schedulerName": "volcano", "containers": containers} | spec,
    }


def job_flow(flows: list[Raw]) -> Raw:
    """A JobFlow."""
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"flows": flows},
    }


def cron_job(inner: Raw, **spec: Any) -> Raw:
    """A CronJob of a Job."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "hostile", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": inner["spec"]}} | spec,
    }


def job_template(inner: Raw) -> Raw:
    """A JobTemplate of a Job."""
    return inner | {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"}


def hyper_node(members: list[Raw]) -> Raw:
    """A HyperNode."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "hostile"},
        "spec": {"tier": 1, "members": members},
    }


def near(n: int, item: Callable[[int], str]) -> list[Raw]:
    """Members that a pattern selects."""
    return [{"type": "Node", "selector": {"regexMatch": {"pattern": item(i)}}} for i in range(n)]
