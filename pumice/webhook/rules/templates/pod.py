"""Pod templates as a whole: which room looks at which field.

A check is called only for a field that is there, so that a template costs what it says. Types come
first: whatever the other rooms see has the right type and is not null.

Source: webhook specification, section 7, and what a Kubernetes API server of version 1.36 accepts.
"""

import re
from collections.abc import Callable

from pumice.api import keys
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates import (
    affinity,
    annotations,
    certificates,
    claim_templates,
    container_security,
    containers,
    deprecated,
    dns,
    doubtful,
    environment,
    features,
    gates,
    handlers,
    hosts,
    images,
    lifetime,
    metadata,
    mounts,
    pod_resources,
    pod_security,
    ports,
    probes,
    projections,
    references,
    requirements,
    resources,
    restarts,
    security_profiles,
    selectors,
    spread,
    tolerations,
    types,
    volume_files,
    volume_needs,
    volume_sources,
    volumes,
    windows,
)
from pumice.webhook.rules.templates.labels import labels
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.within import unaffected

__all__ = ["RULES", "pod_template"]

RULES: tuple[Rule, ...] = (
    *types.RULES,
    *features.RULES,
    *metadata.RULES,
    *annotations.RULES,
    *containers.RULES,
    *images.RULES,
    *ports.RULES,
    *environment.RULES,
    *mounts.RULES,
    *requirements.RULES,
    *resources.RULES,
    *pod_resources.RULES,
    *probes.RULES,
    *handlers.RULES,
    *restarts.RULES,
    *container_security.RULES,
    *security_profiles.RULES,
    *windows.RULES,
    *volumes.RULES,
    *volume_needs.RULES,
    *volume_sources.RULES,
    *volume_files.RULES,
    *projections.RULES,
    *certificates.RULES,
    *claim_templates.RULES,
    *affinity.RULES,
    *selectors.RULES,
    *spread.RULES,
    *tolerations.RULES,
    *dns.RULES,
    *hosts.RULES,
    *references.RULES,
    *lifetime.RULES,
    *gates.RULES,
    *pod_security.RULES,
    *deprecated.RULES,
    *doubtful.RULES,
)
"""Every rule about pod templates."""

_COMPARING = frozenset(rule.code for rule in RULES if rule.compares)
_OF_THE_CONTROLLER = frozenset(
    {keys.JOB_NAME, keys.JOB_NAMESPACE, keys.QUEUE_NAME, keys.TASK_INDEX, keys.TASK_SPEC}
)
"""Keys of the labels that every pod of a Job gets."""

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
    aside = site.case.sibling()
    _judge(Site(aside, site.path), readable)
    dropped = {_may_differ(path) for path in unreadable}
    site.case.errors += unaffected(aside.errors, dropped, _COMPARING)
    site.case.warnings += unaffected(aside.warnings, dropped, _COMPARING)


def _may_differ(path: str) -> str:
    """The field whose results may be wrong without the field at a path.

    It is the field itself where its neighbours have little to do with it, and otherwise the object around it.
    """
    return path if _OF_ITS_OWN.search(path) else path.rpartition(".")[0]


def _judge(site: Site, template: Raw) -> None:
    """Judge a template whose fields all have the right types."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    at_spec = site.at("spec")
    if meta:
        metadata.metadata(site, meta)
        if meta.get("annotations"):
            annotations.annotations(site.at("metadata.annotations"), meta["annotations"], spec)
    named = volumes.by_name(spec)
    if named:
        volumes.volumes(at_spec, spec, named)
    containers.containers(at_spec, spec, named)
    for field in spec:
        check = _CHECKS.get(field)
        if check is not None:
            check(at_spec, spec)
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        pod_labels = _OF_THE_CONTROLLER.union(meta.get("labels", ()))
        if "affinity" in spec:
            affinity.affinity(at_spec.at("affinity"), spec["affinity"], pod_labels)
        if "topologySpreadConstraints" in spec:
            spread.topology_spread(at_spec, spec, pod_labels)


def _node_selector(site: Site, spec: Raw) -> None:
    labels(site, affinity.TPL_NODE_SELECTOR, spec["nodeSelector"], "nodeSelector")
    for key in spec["nodeSelector"]:
        if key in deprecated.NODE_LABELS:
            deprecated.node_label(site, key, f"nodeSelector.{key}")


_CHECKS: dict[str, Callable[[Site, Raw], None]] = {
    "restartPolicy": lifetime.restart_policy,
    "activeDeadlineSeconds": lifetime.active_deadline,
    "nodeSelector": _node_selector,
    "tolerations": tolerations.tolerations,
    "schedulingGates": gates.scheduling_gates,
    "readinessGates": gates.readiness_gates,
    "priority": lifetime.priority,
    "preemptionPolicy": lifetime.preemption_policy,
    "overhead": lifetime.overhead,
    "serviceAccountName": references.reference("serviceAccountName"),
    "serviceAccount": references.service_account,
    "nodeName": references.reference("nodeName"),
    "priorityClassName": references.reference("priorityClassName"),
    "runtimeClassName": references.runtime_class,
    "resourceClaims": references.resource_claims,
    "schedulingGroup": references.scheduling_group,
    "dnsPolicy": dns.dns_policy,
    "dnsConfig": dns.dns_config,
    "imagePullSecrets": doubtful.pull_secrets,
    "terminationGracePeriodSeconds": doubtful.grace_period,
    "hostname": hosts.hostname,
    "subdomain": hosts.subdomain,
    "hostnameOverride": hosts.hostname_override,
    "hostAliases": hosts.host_aliases,
    "hostUsers": hosts.host_users,
    "securityContext": pod_security.security_context,
    "shareProcessNamespace": pod_security.share_process_namespace,
    "os": pod_security.operating_system,
}
"""Checks of the fields of a pod's spec."""
