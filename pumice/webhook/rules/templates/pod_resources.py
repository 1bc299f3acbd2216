"""Resources of a pod as a whole, against those of its containers.

When a pod is created, Kubernetes fills in what is left out: requests from limits, and the pod's from
its containers'. What fits as written and not when filled in is told under a rule of its own, because
the template passes and its pods do not.
"""

from collections.abc import Iterator

from pumice.api.quantities import format_milli
from pumice.webhook.rules.resource_names import HUGE_PAGES, is_shared, pod_resource_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import requirements
from pumice.webhook.rules.templates.requirements import Amounts, Problem, silently
from pumice.webhook.rules.templates.site import Raw, Site, entries

__all__ = ["pod_resources"]

TPL_POD_RESOURCES = Rule(
    "TPL-POD-RESOURCES",
    "the resources of a pod as a whole cover those of its containers",
    "Together the containers would have more than the pod.",
    "spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {requests: {cpu: 2}}}]}",
)
TPL_POD_RESOURCES_FILLED = Rule(
    "TPL-POD-RESOURCES-FILLED",
    "they also do once Kubernetes has filled in the requests that are left out",
    "Kubernetes takes the template, fills requests in for each pod, and then refuses the pod.",
    "spec: {resources: {requests: {cpu: 1}}, containers: [{resources: {limits: {cpu: 2}}}]}",
    stricter=True,
)

_judge = requirements.judge_by(pod_resource_problem)


def pod_resources(site: Site, spec: Raw) -> None:
    """Check `spec.resources`."""
    found = spec["resources"]
    if site.pod.os == "windows":
        message = "must not be set for a pod of Windows"
        site.report(TPL_POD_RESOURCES, message, "resources")
        return
    if "claims" in found:
        message = "must be set on containers, not on the pod as a whole"
        site.report(TPL_POD_RESOURCES, message, "resources.claims")
    limits, requests = requirements.read(site, found, "resources", _judge)
    if not limits and not requests:
        return
    filled = list(_problems(spec, limits, requests, fill=True))
    if filled:
        written = {
            (field, rule) for rule, field, _ in _problems(spec, limits, requests, fill=False)
        }
        for rule, field, message in filled:
            kept = rule if (field, rule) in written else TPL_POD_RESOURCES_FILLED
            site.report(kept, message, field)


def _problems(spec: Raw, limits: Amounts, requests: Amounts, *, fill: bool) -> Iterator[Problem]:
    """What is wrong with amounts that can be read, as written or with what is left out filled in."""
    asked = _together(spec, "requests", fill=fill)
    limited = _together(spec, "limits", fill=False)
    if fill:
        limits, requests = _filled(limits, requests, asked, limited)
    for rule, field, message in requirements.conflicts(limits, requests):
        yield rule, f"resources.{field}" if field else "resources", message
    pages = {name: each for name, each in limited.items() if name.startswith(HUGE_PAGES)}
    for which, of_pod, together, words in (
        ("requests", requests, asked, "what the containers request"),
        ("limits", limits, pages, "the limits of the containers"),
    ):
        for name, amount in together.items():
            if amount > of_pod.get(name, amount):
                whole = format_milli(of_pod[name])
                message = f"must be at least {words} ({format_milli(amount)}), found {whole}"
                yield TPL_POD_RESOURCES, f"resources.{which}.{name}", message
    for index, container in entries(spec.get("containers")):
        for name, amount in _amounts(container, "limits", fill=False).items():
            if amount > limits.get(name, amount):
                whole = format_milli(limits[name])
                message = (
                    f"must be at most the pod's limit of {whole}, found {format_milli(amount)}"
                )
                yield TPL_POD_RESOURCES, f"containers[{index}].resources.limits.{name}", message


def _filled(
    limits: Amounts, requests: Amounts, asked: Amounts, limited: Amounts
) -> tuple[Amounts, Amounts]:
    """Limits and requests of the pod, with what Kubernetes fills in."""
    pages = {
        name: amount
        for name, amount in limited.items()
        if name.startswith(HUGE_PAGES) and name not in requests
    }
    limits = pages | limits
    if not limits:
        return limits, requests
    from_containers = {
        name: amount
        for name, amount in asked.items()
        if is_shared(name) and pod_resource_problem(name, hinted=False) is None
    }
    from_limits = {
        name: amount
        for name, amount in limits.items()
        if not pod_resource_problem(name, hinted=False)
    }
    return limits, from_limits | from_containers | requests


def _together(spec: Raw, which: str, *, fill: bool) -> Amounts:
    """The most that the containers have at a time.

    Regular containers and sidecars run side by side; an init container runs alone, beside the
    sidecars before it.
    """
    total: Amounts = {}
    for _, container in entries(spec.get("containers")):
        _add(total, _amounts(container, which, fill=fill))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for _, container in entries(spec.get("initContainers")):
        amounts = _amounts(container, which, fill=fill)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(starting, sidecars)
        else:
            _add(amounts, sidecars)
            _raise(starting, amounts)
    _raise(total, starting)
    return total


def _amounts(container: Raw, which: str, *, fill: bool) -> Amounts:
    found = container.get("resources", {})
    amounts = silently(found.get(which, {}))
    return silently(found.get("limits", {})) | amounts if fill else amounts


def _add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = max(amount, total.get(name, amount))
