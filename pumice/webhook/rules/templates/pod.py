"""Pod templates as a whole.

Types come first: all other checks see only fields that have the right type and are not null. Each file here has the
rules and the table of the fields that it is named after.

Source: what a Kubernetes API server of version 1.36 accepts.
"""

import re

from pumice.api import keys
from pumice.api.meta import Raw
from pumice.webhook.rules.case import check_rest
from pumice.webhook.rules.rule import Rule, rules_in
from pumice.webhook.rules.templates import (
    annotations,
    containers,
    environment,
    lifetime,
    metadata,
    mounts,
    network,
    pod_resources,
    projections,
    resources,
    scheduling,
    security,
    shapes,
    types,
    volumes,
)
from pumice.webhook.rules.templates.table import CheckedPod, Site, compiled_by_field

_FILES = (
    types,
    metadata,
    annotations,
    containers,
    environment,
    mounts,
    resources,
    pod_resources,
    volumes,
    projections,
    scheduling,
    network,
    lifetime,
    security,
    shapes,
)

_NAMED = [rule for file in _FILES for rule in rules_in(file)]
RULES: tuple[Rule, ...] = tuple(dict.fromkeys(reversed(_NAMED)))[::-1]
"""Every rule about pod templates. A rule that several files have is listed with the last one, which defines it."""

_SPEC = compiled_by_field(
    *lifetime.ROWS,
    *scheduling.ROWS,
    *resources.SPEC_ROWS,
    *network.ROWS,
    *security.ROWS,
)
"""Checks the fields of a pod's spec, except for volumes and containers."""

_LABELS = frozenset(
    {keys.JOB_NAME, keys.JOB_NAMESPACE, keys.QUEUE_NAME, keys.TASK_INDEX, keys.TASK_SPEC}
)
"""Keys of the labels that every pod of a Job gets."""
_COMPARING = frozenset(rule.code for rule in RULES if rule.compares)
_OF_ITS_OWN = re.compile(
    r"(\.spec|\.metadata|\.(initC|c)ontainers\[\d+\])(\.\w+(\[\d+\])?)?$"
    r"|(\.resources\.(limits|requests)|\.spec\.overhead)\..+$"
)
"""Fields of a pod and of a container, and quantities, that hardly depend on other fields."""


def pod_template(site: Site, template: Raw) -> None:
    """Report all problems for which the API server would refuse a pod of a template, which may be any object."""
    if types.fits(template):
        _judge(site, template)
        return
    readable, unreadable = types.read(site, template)
    if not unreadable:
        _judge(site, readable)
        return
    dropped = {_may_differ(path) for path in unreadable}
    check_rest(site.case, dropped, _COMPARING, lambda rest: _judge(Site(rest, site.path), readable))


def _may_differ(path: str) -> str:
    """The field whose results may be wrong without the field at a path.

    It is the field itself if other fields hardly depend on it, and otherwise its parent.
    """
    return path if _OF_ITS_OWN.search(path) else path.rpartition(".")[0]


def _judge(site: Site, template: Raw) -> None:
    """Check a template; all its fields have the right types."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    pod = CheckedPod(spec, _LABELS.union(meta.get("labels", ())))
    at_spec = Site(site.case, f"{site.path}.spec", pod)
    if meta:
        metadata.METADATA(site, meta, "metadata", template)
        if meta.get("annotations"):
            at_annotations = Site(site.case, f"{site.path}.metadata.annotations", pod)
            annotations.annotations(at_annotations, meta["annotations"], spec)
    if "volumes" in spec:
        volumes.VOLUMES(at_spec, spec["volumes"], "volumes", spec)
    containers.containers(at_spec, spec)
    _SPEC(at_spec, spec, "", template)
