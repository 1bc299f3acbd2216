"""Resources of containers: requests and limits, claims, and resize policies.

Pods as a whole, and runtime classes, have the same form of requests and limits. Kubernetes accepts amounts with a unit
that was hardly meant without a warning: `cpu: 500M` asks for 500 million cores, and `memory: 4` for 4 bytes.
"""

import re
from collections.abc import Callable, Iterator

from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.api.quantities import MILLI, format_milli, parse_milli
from pumice.api.remembering import remembered
from pumice.webhook.rules.resource_names import (
    HUGE_PAGES,
    SPELLING,
    container_resource_problem,
    count_problem,
    hint,
    is_integer,
    is_shared,
    is_vendors,
    page_size,
)
from pumice.webhook.rules.templates.shapes import NOT_SET, TPL_DOUBTFUL, FieldRule, refused, warned
from pumice.webhook.rules.templates.table import Check, Row, Site, compiled

TPL_RESOURCE = FieldRule(
    "TPL-RESOURCE",
    "resources are cpu, memory, ephemeral-storage, hugepages-SIZE or VENDOR/NAME",
    "No node has any other resource, so the pod would never be created.",
    "resources: {limits: {gpu: 1}}",
)
TPL_RESOURCE_NAME = warned(
    "TPL-RESOURCE-NAME",
    "names of devices are spelt right",
    "No node has a device of another name, so the pod waits forever.",
    "resources: {limits: {nvdia.com/gpu: 1}}",
)
TPL_QUANTITY = refused(
    "TPL-QUANTITY",
    "quantities are valid, 0 or more, and integers for counted resources",
    "resources: {limits: {nvidia.com/gpu: 500m}}",
)
TPL_LIMIT = FieldRule(
    "TPL-LIMIT",
    "requests are at most the limits",
    "The request could never be granted.",
    "resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
)
TPL_LIMIT_EQUAL = FieldRule(
    "TPL-LIMIT-EQUAL",
    "for huge pages and extended resources the request is the limit",
    "They cannot be overcommitted, so a container gets exactly what it requests.",
    "resources: {requests: {nvidia.com/gpu: 1}}",
)
TPL_HUGEPAGES = refused(
    "TPL-HUGEPAGES",
    "huge pages come as whole pages, and with cpu or memory",
    "resources: {limits: {memory: 1Gi, hugepages-2Mi: 3Mi}}",
    compares=True,
)
TPL_CLAIM = refused(
    "TPL-CLAIM",
    "resources.claims names claims of the pod, each request once",
    "resources: {claims: [{name: gpu}]}",
    compares=True,
)
TPL_RESIZE = refused(
    "TPL-RESIZE",
    "resizePolicy is about cpu and memory, once each, and restarts only what is restarted anyway",
    "restartPolicy: Never, containers: [{resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]}]",
)
TPL_POD_CLAIM = refused(
    "TPL-POD-CLAIM",
    "a resource claim has a name of its own, and comes from one ResourceClaim or one template",
    "resourceClaims: [{name: gpu}]",
)
TPL_CPU_UNIT = warned(
    "TPL-CPU-UNIT",
    "cpu is an amount of cores that a node can have",
    "cpu is counted in cores: 500m is half a core, 500M is 500 million cores, and such a pod waits forever.",
    "resources: {requests: {cpu: 500M}}",
)
TPL_MEMORY_UNIT = warned(
    "TPL-MEMORY-UNIT",
    "memory and ephemeral-storage of less than 1M have a unit",
    "A number without a unit is a number of bytes: memory: 4 is 4 bytes, and no container starts with that limit.",
    "resources: {limits: {memory: 4}}",
)

_MOST_CORES = 10_000 * MILLI
"""More than any node has, in milli-units."""
_LEAST_BYTES = 10**6 * MILLI
"""A memory limit below this is too low for any container to start, in milli-units."""
_MOST_GIBIBYTES = 64
"""Numbers up to this probably mean gibibytes, greater ones mebibytes."""
_CPU = re.compile(r"(\d+(?:\.\d+)?)M?", re.ASCII)
_WHOLE = re.compile(r"\d+", re.ASCII)
_MOST_COUNTED = 2**63 - 1
"""The largest count in milli-units; for a larger one Kubernetes cannot decide whether it is an integer."""
_MOST_BINARY = _MOST_COUNTED * MILLI
"""In milli-units; Kubernetes reads larger binary quantities as this value."""

Amounts = dict[str, int]
"""Quantities in milli-units by name of the resource."""

Problem = tuple[FieldRule, str, str]
"""The broken rule, the field, and the problem."""

Broken = tuple[FieldRule, str]
"""The broken rule, and the problem."""

Judge = Callable[[str, object, bool], tuple[int, tuple[Broken, ...]]]
"""Checks a resource by its name and quantity, with or without a hint at the intended name.

Returns the quantity in milli-units, and the problems of name and quantity.
"""


def judge_by(name_problem: Callable[[str, bool], str | None]) -> Judge:
    """A check that refuses invalid names. It has a cache: most quantities of a Job, and of similar Jobs, are equal."""

    @remembered(4096)
    def judge(name: str, value: object, hinted: bool) -> tuple[int, tuple[Broken, ...]]:
        amount, problems = milli(value), []
        if problem := name_problem(name, hinted):
            problems.append((TPL_RESOURCE, problem))
        elif "/" in name and (meant := hint(name, hinted)):
            problems.append((TPL_RESOURCE_NAME, f'resource "{name}" is not known{meant}'))
        if broken := _broken_by(name, value, amount):
            problems.append(broken)
        return amount, tuple(problems)

    return judge


def _broken_by(name: str, value: object, amount: int) -> Broken | None:
    """The rule that a quantity breaks, also given in milli-units."""
    if problem := count_problem(value, amount, name):
        return TPL_QUANTITY, problem
    if amount > _MOST_COUNTED and is_integer(name):
        return TPL_QUANTITY, f"must be at most {_MOST_COUNTED // MILLI}, found {value}"
    if name in ("memory", "ephemeral-storage"):
        if amount % MILLI:
            problem = "is a fractional number of bytes; m is for thousandths, M and Mi for millions"
            return TPL_DOUBTFUL, f"{value} {problem}"
        if 0 < amount < _LEAST_BYTES and _WHOLE.fullmatch(str(value)):
            unit = "Gi" if amount <= _MOST_GIBIBYTES * MILLI else "Mi"
            read = "1 byte" if amount == MILLI else f"{amount // MILLI} bytes"
            return TPL_MEMORY_UNIT, f'{value} is {read} (did you mean "{amount // MILLI}{unit}"?)'
    if name == "cpu" and amount > _MOST_CORES:
        matched = _CPU.fullmatch(str(value))
        why = ", since M means millions" if str(value).endswith("M") else ""
        meant = f' (did you mean "{matched[1]}m"?)' if matched else ""
        return TPL_CPU_UNIT, f"{value} is {amount // MILLI} cores{why}{meant}"
    size = page_size(name) if name.startswith(HUGE_PAGES) else 0
    if size and -(-amount // MILLI) % size:
        multiple = f"positive integer multiple of {format_milli(size * MILLI)}, the size of a page"
        return TPL_HUGEPAGES, f"{value} is not {multiple}"
    return None


of_container = judge_by(container_resource_problem)
"""Checks a resource of a container."""


def milli(value: object) -> int:
    """A quantity in milli-units, as Kubernetes compares it."""
    amount = parse_milli(value)
    return min(amount, _MOST_BINARY) if type(value) is str and value.endswith("i") else amount


def amounts(site: Site, found: Raw, field: str, judge: Judge) -> Amounts:
    """Quantities by name; problems of each are reported."""
    read: Amounts = {}
    hinted = not site.case.suggestions.spent
    for resource, value in found.items():
        read[resource], problems = judge(resource, value, hinted)
        if (problems or "/" in resource) and hinted and (problems or is_vendors(resource)):
            site.case.suggestions.charge(SPELLING)
            hinted = not site.case.suggestions.spent
        for rule, message in problems:
            site.report(rule, message, f"{field}.{resource}")
    return read


def conflicts(limits: Amounts, requests: Amounts) -> Iterator[Problem]:
    """Conflicts between fields of the object with limits and requests."""
    for resource, wanted in requests.items():
        limit, shared = limits.get(resource), is_shared(resource)
        if wanted == limit or (shared and (limit is None or wanted < limit)):
            continue
        rule = TPL_LIMIT if shared else TPL_LIMIT_EQUAL
        requested = format_milli(wanted)
        if limit is None:
            message = "Limit must be set for non overcommitable resources: found none, expected what is requested"
            yield rule, f"limits.{resource}", f"{message} ({requested})"
        else:
            relation = "less than or equal to" if shared else "equal to"
            most = f"{resource} limit of {format_milli(limit)}"
            yield rule, f"requests.{resource}", f"must be {relation} {most}, found {requested}"
    names = (*limits, *requests)
    has_others = "cpu" in names or "memory" in names
    if not has_others and any(each.startswith(HUGE_PAGES) for each in names):
        yield TPL_HUGEPAGES, "", "HugePages require cpu or memory, found neither"


def requirements(
    site: Site, found: Raw, field: str, judge: Judge = of_container
) -> tuple[Amounts, Amounts]:
    """Limits and requests; problems of each are reported."""
    limits = amounts(site, found.get("limits", {}), f"{field}.limits", judge)
    return limits, amounts(site, found.get("requests", {}), f"{field}.requests", judge)


def _resources(site: Site, found: Raw, field: str, _: Raw) -> None:
    for rule, member, message in conflicts(*requirements(site, found, field)):
        site.report(rule, message, f"{field}.{member}" if member else field)


def _claims(site: Site, claims: list[Raw], field: str, _: Raw) -> None:
    """Check that claims belong to the pod, and that none is used twice."""
    known = {claim.get("name", "") for claim in site.pod.spec.get("resourceClaims", ())} - {""}
    claimed: dict[str, set[str]] = {}
    for index, claim in enumerate(claims):
        called, part = claim.get("name", ""), claim.get("request", "")
        where = f"{field}[{index}].name"
        if not called:
            site.report(TPL_CLAIM, NOT_SET, where, "FieldValueRequired")
            continue
        parts = claimed.setdefault(called, set())
        if parts and not (part and parts.isdisjoint((part, ""))):
            message = f"{quoted(called)} is already claimed"
            site.report(TPL_CLAIM, message, where, "FieldValueDuplicate")
        parts.add(part)
        if called not in known:
            found = f"{quoted(called)}{site.case.did_you_mean(called, known)}"
            message = f"must be one of the names in pod.spec.resourceClaims, found {found}"
            site.report(TPL_CLAIM, message, where, "FieldValueNotFound")


_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


def _not_restarted(message: str, *, never: bool) -> Check:
    """A resize policy that restarts no container, if the pod is never restarted, or is."""
    return TPL_RESIZE.breaking(
        message,
        lambda site, found, _: (
            found == "RestartContainer" and (site.pod.spec.get("restartPolicy") == "Never") is never
        ),
    )


_restart = _not_restarted("must be 'NotRequired' when pod `restartPolicy` is 'Never'", never=True)
_restart_of_init = _not_restarted(
    "must be NotRequired for an init container without restartPolicy Always", never=False
)
_one_policy = TPL_RESIZE.unique("resourceName", words="has a policy already at")
ROWS = (
    Row("resources", _resources),
    Row("resources.claims[].request", TPL_CLAIM.valid(dns_label_problem, empty=True)),
    Row("resources.claims", _claims),
    Row("resizePolicy", _one_policy),
    Row("resizePolicy[].resourceName|restartPolicy", TPL_RESIZE.required(), ""),
    Row("resizePolicy[].resourceName", TPL_RESIZE.one_of("cpu", "memory", empty=True)),
    Row("resizePolicy[].restartPolicy", TPL_RESIZE.one_of(*_RESIZE_POLICIES, empty=True)),
    Row("resizePolicy[].restartPolicy", _restart),
)
"""Fields of a container."""

INIT_ROWS = (Row("resizePolicy[].restartPolicy", _restart_of_init),)
"""Further fields of an init container that runs to completion."""

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_one_source = TPL_POD_CLAIM.one_of_two(
    *_SOURCES,
    both="at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    empty=False,
)
_claim = compiled(
    Row("name", TPL_POD_CLAIM.required(dns_label_problem, reason=None), ""),
    Row("", _one_source),
    Row("|".join(_SOURCES), TPL_POD_CLAIM.valid(dns_subdomain_problem)),
)
SPEC_ROWS = (Row("resourceClaims", TPL_POD_CLAIM.unique("name", then=_claim)),)
"""Fields of a pod's spec."""
