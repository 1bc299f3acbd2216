"""Pod templates: what the API server would refuse when the pods are created, said before.

Templates stay raw JSON, so every look at them reckons with any shape.
"""

from collections.abc import Iterator
from typing import Any

from pumice.api.jobs import Job, Task
from pumice.api.names import dns_label_problem
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["RULES", "TPL_CONTAINERS", "containers", "pod_templates"]

Raw = dict[str, Any]

TPL_CONTAINERS = Rule(
    "TPL-CONTAINERS",
    "a pod template has at least one container",
    "Kubernetes refuses a pod without containers.",
    "template: {spec: {containers: []}}",
    reason="FieldValueRequired",
)
TPL_CONTAINER_NAME = Rule(
    "TPL-CONTAINER-NAME",
    "containers are named with DNS labels",
    "Kubernetes refuses the pod otherwise.",
    "containers: [{name: Main_Container, image: busybox}]",
)
TPL_CONTAINER_DUP = Rule(
    "TPL-CONTAINER-DUP",
    "no two containers of a pod have the same name, init containers included",
    "Kubernetes refuses the pod otherwise.",
    "containers: [{name: main, image: a}, {name: main, image: b}]",
    reason="FieldValueDuplicate",
)
TPL_IMAGE = Rule(
    "TPL-IMAGE",
    "containers have an image",
    "Kubernetes refuses the pod otherwise.",
    "containers: [{name: main}]",
    reason="FieldValueRequired",
)

RULES = (TPL_CONTAINERS, TPL_CONTAINER_NAME, TPL_CONTAINER_DUP, TPL_IMAGE)


def pod_templates(case: Case, job: Job) -> None:
    """Check the pod template of every task."""
    for index, task in enumerate(job.tasks):
        _containers(case, task, index)


def containers(spec: Raw, field: str) -> Iterator[tuple[int, Raw]]:
    """Containers of a pod spec, `containers` or `initContainers`, with their positions."""
    found = spec.get(field)
    if isinstance(found, list):
        for index, container in enumerate(found):
            if isinstance(container, dict):
                yield index, container


def _containers(case: Case, task: Task, index: int) -> None:
    spec = task.pod_spec()
    if not spec.get("containers"):
        path = f"spec.tasks[{index}].template.spec.containers"
        case.report(TPL_CONTAINERS, path, "must have at least one container, found none")
    named: dict[str, str] = {}
    for field in ("containers", "initContainers"):
        for position, container in containers(spec, field):
            name = container.get("name")
            if not container.get("image"):
                path = f"spec.tasks[{index}].template.spec.{field}[{position}].image"
                case.report(TPL_IMAGE, path, "must name an image, found none")
            if isinstance(name, str) and name not in named and dns_label_problem(name) is None:
                named[name] = f"spec.tasks[{index}].template.spec.{field}[{position}]"
            else:
                path = f"spec.tasks[{index}].template.spec.{field}[{position}].name"
                _name(case, name, path, named)


def _name(case: Case, name: object, path: str, named: dict[str, str]) -> None:
    """Say what is wrong with a container's name."""
    if not isinstance(name, str) or not name:
        case.report(TPL_CONTAINER_NAME, path, "must be set, found none")
    elif name in named:
        message = f'"{name}" is already the name of {named[name]}'
        case.report(TPL_CONTAINER_DUP, path, message)
    elif problem := dns_label_problem(name):
        case.report(TPL_CONTAINER_NAME, path, problem)
