"""Containers of a pod: which room looks at which field of them.

A check is called only for a field that is there, so that a container costs what it says.
"""

from collections.abc import Callable, Mapping

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import (
    container_security,
    environment,
    images,
    mounts,
    pod_resources,
    ports,
    probes,
    resources,
    restarts,
    windows,
)
from pumice.webhook.rules.templates.labels import label_problem
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of

__all__ = ["RULES", "TPL_CONTAINERS", "containers"]

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
TPL_TERMINATION = Rule(
    "TPL-TERMINATION",
    "terminationMessagePolicy is File or FallbackToLogsOnError",
    "Kubernetes knows no other.",
    "containers: [{name: main, image: busybox, terminationMessagePolicy: Log}]",
    reason="FieldValueNotSupported",
)
TPL_INIT = Rule(
    "TPL-INIT",
    "init containers have no probes and no hooks, unless their restartPolicy is Always",
    "They run to their end; only a sidecar keeps running and can be asked how it is.",
    "initContainers: [{name: init, image: busybox, livenessProbe: {exec: {command: [ls]}}}]",
    reason="FieldValueForbidden",
    compares=True,
)
TPL_EPHEMERAL = Rule(
    "TPL-EPHEMERAL",
    "templates have no ephemeral containers",
    "They can only be added to a pod that runs.",
    "ephemeralContainers: [{name: debugger, image: busybox}]",
    reason="FieldValueForbidden",
)

RULES = (
    TPL_CONTAINERS,
    TPL_CONTAINER_NAME,
    TPL_CONTAINER_DUP,
    TPL_TERMINATION,
    TPL_INIT,
    TPL_EPHEMERAL,
)

Check = Callable[[Site, Raw, Surroundings], None]

_TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
_YOUNG = ["stopSignal"]
"""Fields of hooks that a Kubernetes drops which does not know them; and with them hooks that are nothing else."""


def containers(site: Site, spec: Raw, volumes: Mapping[str, Raw]) -> None:
    """Check all containers of a pod, and what the pod says about them as a whole.

    Args:
        site: Where the pod spec is.
        spec: The pod spec.
        volumes: Declared volumes by name.

    Source: webhook specification, section 7.
    """
    pod = Surroundings(spec, volumes)
    if not spec.get("containers"):
        site.report(TPL_CONTAINERS, "must have at least one container, found none", "containers")
    named: dict[str, str] = {}
    for index, container in entries(spec.get("containers")):
        _container(site.item("containers", index), container, pod, _REGULAR, named)
    for index, container in entries(spec.get("initContainers")):
        checks = _SIDECAR if container.get("restartPolicy") == "Always" else _INIT
        _container(site.item("initContainers", index), container, pod, checks, named)
    if spec.get("ephemeralContainers"):
        message = "must not be set: ephemeral containers are for pods that run"
        site.report(TPL_EPHEMERAL, message, "ephemeralContainers")
    if "resources" in spec and site.case.settings.pod_level_resources:
        pod_resources.pod_resources(site, spec)
    if pod.windows_options:
        windows.host_processes(site, spec)


def _container(
    site: Site,
    container: Raw,
    pod: Surroundings,
    checks: Mapping[str, Check],
    named: dict[str, str],
) -> None:
    name = container.get("name")
    if name is None or name == "":
        site.report(TPL_CONTAINER_NAME, "must be set, found none", "name")
    elif isinstance(name, str):
        if (first := named.setdefault(name, site.path)) is not site.path:
            message = f'"{name}" is already the name of {first}'
            site.report(TPL_CONTAINER_DUP, message, "name")
        elif problem := label_problem(name):
            site.report(TPL_CONTAINER_NAME, problem, "name")
    images.image(site, container)
    for field, value in container.items():
        check = checks.get(field)
        if check is not None and value is not None:
            check(site, container, pod)


def _termination_message_policy(site: Site, container: Raw, _pod: Surroundings) -> None:
    field = "terminationMessagePolicy"
    one_of(site, TPL_TERMINATION, container[field] or None, _TERMINATION_POLICIES, field)


def _only_for_sidecars(field: str) -> Check:
    """A check that refuses a field of an init container that runs to its end."""

    def refuse(site: Site, container: Raw, _pod: Surroundings) -> None:
        found = container[field]
        if (
            isinstance(found, dict)
            and [name for name in found if found[name] is not None] == _YOUNG
        ):
            return
        site.report(TPL_INIT, "needs restartPolicy: Always in an init container", field)

    return refuse


_COMMON: dict[str, Check] = {
    "env": environment.environment,
    "envFrom": environment.environment_from,
    "imagePullPolicy": images.pull_policy,
    "resizePolicy": resources.resize_policy,
    "resources": resources.resources,
    "restartPolicy": restarts.restart_policy,
    "restartPolicyRules": restarts.restart_rules,
    "securityContext": container_security.security_context,
    "terminationMessagePolicy": _termination_message_policy,
    "volumeDevices": mounts.volume_devices,
    "volumeMounts": mounts.volume_mounts,
}
_RUNNING: dict[str, Check] = {
    "lifecycle": probes.lifecycle,
    "livenessProbe": probes.liveness_probe,
    "readinessProbe": probes.readiness_probe,
    "startupProbe": probes.startup_probe,
}
_REGULAR = _COMMON | _RUNNING | {"ports": ports.ports}
_OF_INIT: dict[str, Check] = {
    "ports": ports.init_ports,
    "restartPolicyRules": restarts.init_restart_rules,
}
_SIDECAR = _COMMON | _RUNNING | _OF_INIT
_INIT = (
    _COMMON
    | {field: _only_for_sidecars(field) for field in _RUNNING}
    | _OF_INIT
    | {"resizePolicy": resources.init_resize_policy}
)
