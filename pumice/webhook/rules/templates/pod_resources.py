"""Resources of a pod as a whole, against those of its containers.

When a pod is created, Kubernetes fills in what is left out: requests from limits, and the pod's from its containers'. A
template that is valid as written and not after that has its own rule, because the API server accepts the template and
refuses its pods.
"""

from collections import Counter
from collections.abc import Iterator

from pumice.api.meta import Raw
from pumice.api.quantities import format_milli
from pumice.webhook.rules.resource_names import HUGE_PAGES, is_shared, pod_resource_problem
from pumice.webhook.rules.templates import resources
from pumice.webhook.rules.templates.shapes import FieldRule, stricter
from pumice.webhook.rules.templates.table import Site

TPL_POD_RESOURCES = FieldRule(
    "TPL-POD-RESOURCES",
    "the resources of a pod as a whole are at least those of its containers",
    "The containers together would exceed the pod.",
    "spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {requests: {cpu: 2}}}]}",
)
TPL_POD_RESOURCES_FILLED = stricter(
    "TPL-POD-RESOURCES-FILLED",
    "the same holds after Kubernetes has filled in missing requests",
    "Kubernetes takes the template, fills requests in for each pod, and then refuses the pod.",
    "spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {limits: {cpu: 2}}}]}",
)

_judge = resources.judge_by(pod_resource_problem)


def pod_resources(site: Site, spec: Raw) -> None:
    """Check `spec.resources`."""
    found = spec["resources"]
    if site.pod.os == "windows":
        site.report(TPL_POD_RESOURCES, "cannot be set for a windows pod", "resources")
        return
    if "claims" in found:
        message = "claims may not be set for Resources at pod-level; set them on containers"
        site.report(TPL_POD_RESOURCES, message, "resources.claims")
    limits, requests = resources.requirements(site, found, "resources", _judge)
    if not limits and not requests:
        return
    filled = list(_problems(spec, limits, requests, fill=True))
    if filled:
        written = {
            (rule, field) for rule, field, _ in _problems(spec, limits, requests, fill=False)
        }
        for rule, field, message in filled:
            kept = rule if (rule, field) in written else TPL_POD_RESOURCES_FILLED
            site.report(kept, message, field)


def _problems(
    spec: Raw, limits: resources.Amounts, requests: resources.Amounts, *, fill: bool
) -> Iterator[resources.Problem]:
    """Problems of quantities, as written or after defaults."""
    asked, limited = _together(spec, "requests", fill=fill), _together(spec, "limits")
    pages = {name: each for name, each in limited.items() if name.startswith(HUGE_PAGES)}
    if fill:
        limits = {name: each for name, each in pages.items() if name not in requests} | limits
        if limits:
            of_containers = {name: each for name, each in asked.items() if is_shared(name)}
            requests = _of_pod(limits) | _of_pod(of_containers) | requests
    for rule, field, message in resources.conflicts(limits, requests):
        yield rule, f"resources.{field}" if field else "resources", message
    for which, of_pod, together, words in (
        ("requests", requests, asked, "aggregate container requests"),
        ("limits", limits, pages, "aggregate container limits"),
    ):
        for name, amount in together.items():
            if amount > of_pod.get(name, amount):
                least, whole = format_milli(amount), format_milli(of_pod[name])
                message = f"must be greater than or equal to {words} ({least}), found {whole}"
                yield TPL_POD_RESOURCES, f"resources.{which}.{name}", message
    for index, container in enumerate(spec.get("containers", ())):
        for name, amount in _amounts(container, "limits").items():
            if amount > limits.get(name, amount):
                most = format_milli(limits[name])
                message = f"must be less than or equal to pod limits ({most}), found {format_milli(amount)}"
                yield TPL_POD_RESOURCES, f"containers[{index}].resources.limits.{name}", message


def _of_pod(amounts: resources.Amounts) -> resources.Amounts:
    """Quantities of resources that a pod as a whole may have."""
    return {name: each for name, each in amounts.items() if not pod_resource_problem(name, False)}


def _together(spec: Raw, which: str, *, fill: bool = False) -> resources.Amounts:
    """The maximum of what the containers use at a time.

    Regular containers and sidecars run concurrently; an init container runs only with the sidecars before it.
    """
    running: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    steps = [running]
    for container in spec.get("containers", ()):
        running.update(_amounts(container, which, fill=fill))
    for container in spec.get("initContainers", ()):
        amounts = _amounts(container, which, fill=fill)
        if container.get("restartPolicy") == "Always":
            running.update(amounts)
            sidecars.update(amounts)
        else:
            steps.append(Counter(amounts))
            steps[-1].update(sidecars)
    names = dict.fromkeys(name for step in steps for name in step)
    return {name: max(step[name] for step in steps if name in step) for name in names}


def _amounts(container: Raw, which: str, *, fill: bool = False) -> resources.Amounts:
    found = container.get("resources", {})
    written = (found.get("limits", {}) if fill else {}) | found.get(which, {})
    return {name: resources.milli(value) for name, value in written.items()}
