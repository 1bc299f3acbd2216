"""Containers of a pod: their names and images, and the tables of all their fields."""

from collections.abc import Iterable

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.webhook.rules.templates import (
    environment,
    lifetime,
    mounts,
    network,
    pod_resources,
    resources,
    security,
)
from pumice.webhook.rules.templates.metadata import label_problem
from pumice.webhook.rules.templates.shapes import FieldRule, refused
from pumice.webhook.rules.templates.table import Check, Row, Site, compiled_by_field

TPL_CONTAINERS = FieldRule(
    "TPL-CONTAINERS",
    "a pod template has at least one container",
    "Kubernetes refuses a pod without containers.",
    "template: {spec: {containers: []}}",
    reason="FieldValueRequired",
)
TPL_CONTAINER_NAME = refused(
    "TPL-CONTAINER-NAME",
    "containers are named with DNS labels",
    "containers: [{name: Main_Container, image: busybox}]",
)
TPL_CONTAINER_DUP = refused(
    "TPL-CONTAINER-DUP",
    "no two containers of a pod have the same name, init containers included",
    "containers: [{name: main, image: a}, {name: main, image: b}]",
    reason="FieldValueDuplicate",
)
TPL_TERMINATION = refused(
    "TPL-TERMINATION",
    "terminationMessagePolicy is File or FallbackToLogsOnError",
    "containers: [{name: main, image: busybox, terminationMessagePolicy: Log}]",
    reason="FieldValueNotSupported",
)
TPL_INIT = FieldRule(
    "TPL-INIT",
    "init containers have no probes and no hooks, unless their restartPolicy is Always",
    "They run to completion; only a sidecar keeps running and can be probed.",
    "initContainers: [{name: init, image: busybox, livenessProbe: {exec: {command: [ls]}}}]",
    reason="FieldValueForbidden",
    compares=True,
)
TPL_EPHEMERAL = FieldRule(
    "TPL-EPHEMERAL",
    "templates have no ephemeral containers",
    "They can only be added to a pod that runs.",
    "ephemeralContainers: [{name: debugger, image: busybox}]",
    reason="FieldValueForbidden",
)
TPL_IMAGE = refused(
    "TPL-IMAGE",
    "containers have an image",
    "containers: [{name: main}]",
    reason="FieldValueRequired",
)
TPL_IMAGE_SPACE = refused(
    "TPL-IMAGE-SPACE",
    "images have no white space around them",
    'containers: [{name: main, image: "busybox "}]',
    later=True,
)
TPL_PULL_POLICY = refused(
    "TPL-PULL-POLICY",
    "imagePullPolicy is Always, IfNotPresent or Never",
    "containers: [{name: main, image: busybox, imagePullPolicy: Sometimes}]",
    reason="FieldValueNotSupported",
)

_TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
_YOUNG = ["stopSignal"]
"""Fields of hooks that older versions of Kubernetes drop, and hooks with only such fields."""
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def containers(site: Site, spec: Raw) -> None:
    """Check all containers of a pod, and fields of the pod about them."""
    if not spec.get("containers"):
        site.report(TPL_CONTAINERS, "must have at least one container, found none", "containers")
    named: dict[str, str] = {}
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            check = _SIDECAR if container.get("restartPolicy") == "Always" else _INIT
            check = _REGULAR if field == "containers" else check
            at = Site(site.case, f"{site.path}.{field}[{index}]", site.pod)
            _container(at, container, check, named)
    if spec.get("ephemeralContainers"):
        message = "ephemeral containers not allowed in pod template: they can only be added to a running pod"
        site.report(TPL_EPHEMERAL, message, "ephemeralContainers")
    if "resources" in spec and site.case.settings.pod_level_resources:
        pod_resources.pod_resources(site, spec)
    security.host_processes(site, spec)


def _container(site: Site, container: Raw, check: Check, named: dict[str, str]) -> None:
    name, image = container.get("name"), container.get("image")
    if not name:
        site.report(TPL_CONTAINER_NAME, "must be set, found none", "name")
    elif (first := named.setdefault(name, site.path)) is not site.path:
        site.report(TPL_CONTAINER_DUP, f'"{name}" is already the name of {first}', "name")
    elif problem := label_problem(name):
        site.report(TPL_CONTAINER_NAME, problem, "name")
    if not image:
        site.report(TPL_IMAGE, "must name an image, found none", "image")
    elif image != image.strip():
        message = f"must not start or end with white space, found {quoted(image)}"
        site.report(TPL_IMAGE_SPACE, message, "image")
    check(site, container, "", container)


_only_for_sidecars = TPL_INIT.breaking(
    "may not be set for init containers without restartPolicy=Always",
    lambda _, found, _o: list(found) != _YOUNG,
)
_COMMON: Iterable[Row] = (
    *environment.ROWS,
    Row("imagePullPolicy", TPL_PULL_POLICY.one_of(*_PULL_POLICIES, empty=True)),
    Row("terminationMessagePolicy", TPL_TERMINATION.one_of(*_TERMINATION_POLICIES, empty=True)),
    *mounts.ROWS,
    *resources.ROWS,
    *security.CONTAINER_ROWS,
)
_REGULAR = compiled_by_field(
    *_COMMON,
    *lifetime.CONTAINER_ROWS,
    *lifetime.PROBE_ROWS,
    *network.CONTAINER_ROWS,
)
_SIDECAR = compiled_by_field(
    *_COMMON,
    *lifetime.INIT_ROWS,
    *lifetime.PROBE_ROWS,
    *network.INIT_ROWS,
)
_INIT = compiled_by_field(
    *_COMMON,
    *lifetime.INIT_ROWS,
    *network.INIT_ROWS,
    *resources.INIT_ROWS,
    Row("lifecycle|livenessProbe|readinessProbe|startupProbe", _only_for_sidecars),
)
