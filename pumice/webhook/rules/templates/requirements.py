"""Requests and limits: names, amounts, and the ones against the others.

Containers and pods as a whole say both in the same form.
"""

from collections.abc import Callable
from functools import lru_cache, partial

from pumice.api.quantities import MILLI, format_milli, parse_milli
from pumice.webhook.rules.resource_names import (
    HUGE_PAGES,
    SPELLING,
    container_resource_problem,
    hint,
    is_integer,
    is_shared,
    is_vendors,
    page_size,
)
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import refused
from pumice.webhook.rules.templates.site import Raw, Site

__all__ = [
    "Amounts",
    "Judge",
    "Problem",
    "amounts",
    "are_plain",
    "conflicts",
    "judge_by",
    "of_container",
    "read",
    "silently",
]

TPL_RESOURCE = Rule(
    "TPL-RESOURCE",
    "resources are cpu, memory, ephemeral-storage, hugepages-SIZE or VENDOR/NAME",
    "No node has another, so the pod would never be created.",
    "resources: {limits: {gpu: 1}}",
)
TPL_RESOURCE_NAME = Rule(
    "TPL-RESOURCE-NAME",
    "names of devices are spelt right",
    "No node has a device of another name, so the pod waits for ever.",
    "resources: {limits: {nvdia.com/gpu: 1}}",
    level="warn",
)
TPL_QUANTITY = refused(
    "TPL-QUANTITY",
    "amounts are quantities of 0 or more, whole numbers where things are counted",
    "resources: {limits: {nvidia.com/gpu: 500m}}",
)
TPL_LIMIT = Rule(
    "TPL-LIMIT",
    "requests are at most the limits",
    "The container could never have what it asks for.",
    "resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
)
TPL_LIMIT_EQUAL = Rule(
    "TPL-LIMIT-EQUAL",
    "for huge pages and extended resources the request is the limit",
    "They are handed out whole; there is no more and no less to be had at times.",
    "resources: {requests: {nvidia.com/gpu: 1}}",
)
TPL_HUGEPAGES = refused(
    "TPL-HUGEPAGES",
    "huge pages come as whole pages, and with cpu or memory",
    "resources: {limits: {memory: 1Gi, hugepages-2Mi: 3Mi}}",
    compares=True,
)

_BYTES = ("memory", "ephemeral-storage")
_MOST_COUNTED = 2**63 - 1
"""The largest count, in milli-units; of a larger one Kubernetes cannot tell whether it is a whole number."""
_MOST_BINARY = _MOST_COUNTED * MILLI
"""In milli-units; what is larger and written in powers of 1024 counts as this to Kubernetes."""

Amounts = dict[str, int]
"""Amounts in milli-units by name of the resource."""

Written = tuple[tuple[str, str | float], ...]
"""Amounts as they are written, by name of the resource."""

Problem = tuple[Rule, str, str]
"""A rule that is broken, the field, and what is wrong."""


Judgement = tuple[int | None, tuple[tuple[Rule, str], ...]]
"""An amount in milli-units, if it can be read, and what is wrong with it and its name."""

Judge = Callable[[str, object, bool], Judgement]
"""Judges a resource by its name and amount; with a hint at the name that was meant, or without."""


def judge_by(name_problem: Callable[[str, bool], str | None]) -> Judge:
    """A judge that refuses these names. It remembers: in a Job, and among Jobs, most amounts are alike."""
    judge: Judge = lru_cache(maxsize=4096)(partial(_judged, name_problem))
    return judge


def read(site: Site, resources: Raw, field: str, judge: Judge) -> tuple[Amounts, Amounts]:
    """Limits and requests that can be read; what is wrong with each for itself is reported."""
    limits, requests = resources.get("limits"), resources.get("requests")
    return (
        amounts(site, limits, f"{field}.limits", judge) if limits else {},
        amounts(site, requests, f"{field}.requests", judge) if requests else {},
    )


def silently(found: Raw) -> Amounts:
    """Amounts, of which nothing is reported."""
    return {name: _milli(value) for name, value in found.items()}


def conflicts(limits: Amounts, requests: Amounts) -> list[Problem]:
    """What does not go together; fields are those of the object that has limits and requests."""
    found: list[Problem] = []
    for name, asked in requests.items():
        limit = limits.get(name)
        if asked != limit and not (is_shared(name) and (limit is None or asked < limit)):
            found.append(_excess(name, asked, limit))
    names = (*limits, *requests)
    has_others = "cpu" in names or "memory" in names
    if not has_others and any(name.startswith(HUGE_PAGES) for name in names):
        message = "huge pages need cpu or memory beside them, found neither"
        found.append((TPL_HUGEPAGES, "", message))
    return found


def _excess(name: str, asked: int, limit: int | None) -> Problem:
    """What is wrong with a request that does not go with its limit."""
    if limit is None:
        message = f"must be set, to what is requested ({format_milli(asked)})"
        return TPL_LIMIT_EQUAL, f"limits.{name}", message
    rule, most = (TPL_LIMIT, "at most ") if is_shared(name) else (TPL_LIMIT_EQUAL, "")
    message = f"must be {most}the limit of {format_milli(limit)}, found {format_milli(asked)}"
    return rule, f"requests.{name}", message


def amounts(site: Site, found: Raw, field: str, judge: Judge) -> Amounts:
    """Amounts that can be read; what is wrong with each for itself is reported."""
    readable: Amounts = {}
    hinted = site.case.hinting
    for name, value in found.items():
        amount, problems = judge(name, value, hinted)
        if (problems or "/" in name) and hinted and (problems or is_vendors(name)):
            site.case.suggestions.charge(SPELLING)
            hinted = not site.case.suggestions.spent
        if amount is not None:
            readable[name] = amount
        for rule, message in problems:
            site.report(rule, message, f"{field}.{name}")
    return readable


def _milli(value: object) -> int:
    """An amount as Kubernetes compares it.

    Raises:
        QuantityError: It is no quantity.
    """
    if value is None:
        return 0
    amount = parse_milli(value)
    return min(amount, _MOST_BINARY) if type(value) is str and value.endswith("i") else amount


def _judged(
    name_problem: Callable[[str, bool], str | None], name: str, value: object, hinted: bool
) -> Judgement:
    problems: list[tuple[Rule, str]] = []
    if problem := name_problem(name, hinted):
        problems.append((TPL_RESOURCE, problem))
    elif "/" in name and (meant := hint(name, hinted)):
        problems.append((TPL_RESOURCE_NAME, f'resource "{name}" is not known{meant}'))
    try:
        amount = _milli(value)
    except ValueError as error:
        return None, (*problems, (TPL_QUANTITY, str(error)))
    if amount < 0:
        problems.append((TPL_QUANTITY, f"must be 0 or more, found {value}"))
    elif amount % MILLI and is_integer(name):
        problems.append((TPL_QUANTITY, f"must be a whole number, found {value}"))
    elif amount % MILLI and name in _BYTES:
        message = (
            f"{value} is not a whole number of bytes; m is for thousandths, M and Mi for millions"
        )
        problems.append((TPL_DOUBTFUL, message))
    elif amount > _MOST_COUNTED and is_integer(name):
        message = f"must be at most {_MOST_COUNTED // MILLI}, found {value}"
        problems.append((TPL_QUANTITY, message))
    elif name.startswith(HUGE_PAGES) and (size := page_size(name)) and -(-amount // MILLI) % size:
        page = format_milli(size * MILLI)
        problems.append((TPL_HUGEPAGES, f"must be whole pages of {page}, found {value}"))
    return amount, tuple(problems)


of_container = judge_by(container_resource_problem)
"""Judges a resource of a container."""


@lru_cache(maxsize=1024)
def are_plain(limits: Written, requests: Written) -> bool:
    """Whether nothing is wrong with limits and requests of a container, of which no name needs a budget to judge."""
    readable: list[Amounts] = []
    for written in (limits, requests):
        judged = {name: of_container(name, value, False) for name, value in written}
        if any(problems or is_vendors(name) for name, (_, problems) in judged.items()):
            return False
        readable.append({name: amount or 0 for name, (amount, _) in judged.items()})
    return not conflicts(*readable)
