"""Fields of the pod that a container may be told: `fieldRef` and `resourceFieldRef`."""

import re
from collections.abc import Collection

from pumice.api.names import qualified_name_problem
from pumice.api.quantities import MILLI, is_whole_milli, parse_milli
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.values import quoted, text

__all__ = ["ENV_FIELDS", "field_ref", "resource_field_ref"]

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""What an environment variable can be told, besides single labels and annotations."""

_ALIASES = {"spec.host": "spec.nodeName"}
_SUBSCRIPT = re.compile(r"(?P<map>[^\[]+)\['(?P<key>.*)'\]", re.DOTALL)
_MAPS = ("metadata.annotations", "metadata.labels")
_RESOURCES = tuple(
    f"{which}.{name}"
    for which in ("limits", "requests")
    for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_DECIMAL = frozenset(10**exponent for exponent in range(0, 19, 3))
_BINARY = frozenset(2**exponent for exponent in range(0, 61, 10))
_USUAL = re.compile(r"([1-9][0-9]*|[0-9]*\.[0-9]+)([numkMGTPE]|[KMGTPE]i)?")


def field_ref(site: Site, rule: Rule, ref: Raw, allowed: Collection[str], field: str) -> None:
    """Check a reference to a field of the pod.

    Args:
        site: Where to report.
        rule: The rule that a bad reference breaks.
        ref: The reference.
        allowed: Fields it may name.
        field: Where it is, from the site on.
    """
    version = ref.get("apiVersion") or "v1"
    if version != "v1" and isinstance(version, str):
        site.report(rule, f'must be "v1", found {quoted(version)}', f"{field}.apiVersion")
        return
    path = text(site, rule, ref.get("fieldPath"), f"{field}.fieldPath")
    if not path or _ALIASES.get(path, path) in allowed:
        return
    match = _SUBSCRIPT.fullmatch(path)
    if match and match["map"] in _MAPS:
        # Kubernetes compares keys of annotations in lower case, here and nowhere else.
        key = match["key"].lower() if match["map"] == "metadata.annotations" else match["key"]
        problem = qualified_name_problem(key)
    else:
        hint = site.case.did_you_mean(path, allowed)
        problem = f"must be a field that a container can be told, found {quoted(path)}{hint}"
    if problem:
        site.report(rule, problem, f"{field}.fieldPath")


def resource_field_ref(site: Site, rule: Rule, ref: Raw, field: str) -> None:
    """Check a reference to a request or limit of a container.

    Args:
        site: Where to report.
        rule: The rule that a bad reference breaks.
        ref: The reference.
        field: Where it is, from the site on.
    """
    resource = text(site, rule, ref.get("resource"), f"{field}.resource")
    if not resource:
        return
    if resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        hint = (
            site.case.did_you_mean(resource, _RESOURCES) or f", known are {', '.join(_RESOURCES)}"
        )
        site.report(rule, f"there is no {quoted(resource)}{hint}", f"{field}.resource")
    elif (divisor := ref.get("divisor")) is not None:
        _divisor(site, rule, resource, divisor, f"{field}.divisor")


def _divisor(site: Site, rule: Rule, resource: str, divisor: object, field: str) -> None:
    try:
        milli = parse_milli(divisor)
    except ValueError as error:
        site.report(rule, str(error), field)
        return
    if milli == 0:
        return
    written = str(divisor)
    # Kubernetes compares what is written: it takes 1000m and 1.0 for 1, and leaves +1, 01 and 1e0 alone.
    usual = _USUAL.fullmatch(written) and is_whole_milli(written)
    if resource.endswith(".cpu"):
        good, wanted = milli in (1, MILLI), "1m or 1"
    else:
        good, wanted = _is_unit(milli, written), "1, or 1 with a suffix such as k, M, Ki or Mi"
    if not usual or not good:
        site.report(rule, f"must be {wanted}, found {written}", field)


def _is_unit(milli: int, written: str) -> bool:
    """Whether a divisor is 1 of some unit of bytes."""
    units, part = divmod(milli, MILLI)
    return part == 0 and (units == 1 or units in (_BINARY if written.endswith("i") else _DECIMAL))
