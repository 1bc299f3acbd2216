"""Pod templates as a whole.

Types come first: all other checks see only fields that have the right type and are not null. Each file here has the
rules and the table of the fields that it is named after.

Source: what a Kubernetes API server of version 1.36 accepts.
"""

import re

from pumice.api.fields import FieldError
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import (
    annotations,
    claim_templates,
    containers,
    doubtful,
    environment,
    lifetime,
    metadata,
    mounts,
    network,
    pod_resources,
    ports,
    probes,
    projections,
    references,
    requirements,
    resources,
    scheduling,
    security,
    selectors,
    types,
    vendor_volumes,
    volumes,
)
from pumice.webhook.rules.templates.site import Pod, Raw, Site
from pumice.webhook.rules.templates.table import compiled_by_field
from pumice.webhook.rules.within import Within

__all__ = ["RULES", "pod_template"]

RULES: tuple[Rule, ...] = (
    *types.RULES,
    *metadata.RULES,
    *annotations.RULES,
    *containers.RULES,
    *ports.RULES,
    *environment.RULES,
    *mounts.RULES,
    *requirements.RULES,
    *resources.RULES,
    *pod_resources.RULES,
    *probes.RULES,
    *volumes.RULES,
    *vendor_volumes.RULES,
    *projections.RULES,
    *claim_templates.RULES,
    *scheduling.RULES,
    *selectors.RULES,
    *network.RULES,
    *references.RULES,
    *lifetime.RULES,
    *security.RULES,
    *doubtful.RULES,
)
"""Every rule about pod templates."""

_SPEC = compiled_by_field(
    (
        *lifetime.ROWS,
        *scheduling.ROWS,
        *references.ROWS,
        *network.ROWS,
        *security.ROWS,
    )
)
"""Checks the fields of a pod's spec, except for volumes and containers."""

_COMPARING = frozenset(rule.code for rule in RULES if rule.compares)
_OF_ITS_OWN = re.compile(
    r"(\.spec|\.metadata|\.(initC|c)ontainers\[\d+\])(\.\w+(\[\d+\])?)?$"
    r"|(\.resources\.(limits|requests)|\.spec\.overhead)\..+$"
)
"""Fields of a pod and of a container, and amounts, whose neighbours have little to do with them."""


def pod_template(site: Site, template: Raw) -> None:
    """Say all that the API server would refuse about a pod made of a template.

    Args:
        site: Where the template is, `spec.tasks[0].template`.
        template: The template, any object.
    """
    if types.fits(template):
        _judge(site, template)
        return
    readable, unreadable = types.read(site, template)
    if not unreadable:
        _judge(site, readable)
        return
    guess = types.read_as_meant(site, template)
    told = _judged_aside(site, guess.template) if guess else None
    if guess and told and guess.sure and _is_sound(told.errors, unreadable):
        site.case.errors += _outside(told.errors, unreadable)
        site.case.warnings += _outside(told.warnings, unreadable)
        return
    rest = _judged_aside(site, readable)
    said = {*told.errors, *told.warnings} if guess and told and guess.simple else None
    site.case.errors += _trusted(rest.errors, unreadable, said)
    site.case.warnings += _trusted(rest.warnings, unreadable, said)


def _is_sound(found: list[FieldError], paths: list[str]) -> bool:
    """Whether what was meant in some places is right there, whatever else it does not fit."""
    inside = Within(paths)
    return all(each.path not in inside or each.code in _COMPARING for each in found)


def _outside(found: list[FieldError], paths: list[str]) -> list[FieldError]:
    inside = Within(paths)
    return [each for each in found if each.path not in inside]


def _judged_aside(site: Site, template: Raw) -> Case:
    aside = site.case.sibling()
    _judge(Site(aside, site.path), template)
    return aside


def _trusted(
    found: list[FieldError], unreadable: list[str], said: set[FieldError] | None
) -> list[FieldError]:
    """Of what was found in the readable rest of a template, that which holds for the whole.

    What is said about a field that could not be read, about what it is a part of, and about its
    neighbours may be wrong. So may be what is said by comparing fields that lie far apart, unless it is
    said word for word with other values in the place of those that could not be read.

    Args:
        found: What was found in the rest.
        unreadable: Paths of what could not be read.
        said: What was found with other values in their place, if there are any.
    """
    doubtful = {
        path if _OF_ITS_OWN.search(path) else path.rpartition(".")[0] for path in unreadable
    }
    inside, around = Within(doubtful), Within(unreadable)
    return [
        each
        for each in found
        if (each.code not in _COMPARING if said is None else each in said)
        and each.path not in inside
        and not around.below(each.path)
    ]


def _judge(site: Site, template: Raw) -> None:
    """Judge a template whose fields all have the right types."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    at_spec = Site(site.case, f"{site.path}.spec", Pod(spec, meta.get("labels", ())))
    if meta:
        metadata.METADATA(site, meta, "metadata", template)
        if meta.get("annotations"):
            at_annotations = Site(site.case, f"{site.path}.metadata.annotations", at_spec.pod)
            annotations.annotations(at_annotations, meta["annotations"], spec)
    if "volumes" in spec:
        volumes.volumes(at_spec, spec["volumes"])
    containers.containers(at_spec, spec)
    _SPEC(at_spec, spec, "", template)
