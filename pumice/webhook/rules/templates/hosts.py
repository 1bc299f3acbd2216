"""Names of a pod as a host, names it knows other hosts by, and what of its node it shares."""

from pumice.api.names import dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.dns import address_problem, odd_address
from pumice.webhook.rules.templates.doubtful import address_twice
from pumice.webhook.rules.templates.features import TPL_FEATURE
from pumice.webhook.rules.templates.site import Raw, Site, entries

__all__ = ["RULES", "host_aliases", "host_users", "hostname", "hostname_override", "subdomain"]

TPL_HOSTNAME = Rule(
    "TPL-HOSTNAME",
    "hostname and subdomain are DNS labels; hostnameOverride is a domain of 64 characters at most",
    "Kubernetes refuses the pod otherwise.",
    "hostname: worker.example.com",
)
TPL_HOST_ALIAS = Rule(
    "TPL-HOST-ALIAS",
    "hostAliases give names to IP addresses",
    "They become lines of /etc/hosts.",
    "hostAliases: [{ip: database, hostnames: [db]}]",
)
TPL_HOST_USERS = Rule(
    "TPL-HOST-USERS",
    "with users of its own, a pod does not share the processes or the IPC of its node",
    "What the node owns would belong to nobody in the pod.",
    "hostUsers: false, hostPID: true",
    reason="FieldValueForbidden",
)

RULES = (TPL_HOSTNAME, TPL_HOST_ALIAS, TPL_HOST_USERS)

_LONGEST_OVERRIDE = 64


def hostname(site: Site, spec: Raw) -> None:
    """Check `hostname`; an empty one is left out."""
    if spec["hostname"] and (problem := dns_label_problem(spec["hostname"])):
        site.report(TPL_HOSTNAME, problem, "hostname")


def subdomain(site: Site, spec: Raw) -> None:
    """Check `subdomain`; an empty one is left out."""
    if spec["subdomain"] and (problem := dns_label_problem(spec["subdomain"])):
        site.report(TPL_HOSTNAME, problem, "subdomain")


def hostname_override(site: Site, spec: Raw) -> None:
    """Check `hostnameOverride`, which replaces what Kubernetes would call the pod."""
    name = spec["hostnameOverride"]
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            message = f"must not be set where {other} is true"
            site.report(TPL_HOSTNAME, message, "hostnameOverride")
    if problem := dns_subdomain_problem(name):
        site.report(TPL_HOSTNAME, problem, "hostnameOverride")
    elif len(name) > _LONGEST_OVERRIDE:
        message = f"must be at most {_LONGEST_OVERRIDE} characters, found {len(name)}"
        site.report(TPL_HOSTNAME, message, "hostnameOverride", "FieldValueTooLong")


def host_aliases(site: Site, spec: Raw) -> None:
    """Check `hostAliases`."""
    seen: dict[str, int] = {}
    for index, alias in entries(spec["hostAliases"]):
        address, field = alias.get("ip", ""), f"hostAliases[{index}].ip"
        if problem := address_problem(address):
            site.report(TPL_HOST_ALIAS, problem, field)
        else:
            odd_address(site, address, field)
            if (first := seen.setdefault(address, index)) != index:
                address_twice(site, address, first, field)
        for position, name in enumerate(alias.get("hostnames", ())):
            if problem := dns_subdomain_problem(name):
                field = f"hostAliases[{index}].hostnames[{position}]"
                site.report(TPL_HOST_ALIAS, problem, field)


def host_users(site: Site, spec: Raw) -> None:
    """Check what a pod with users of its own shares with its node."""
    if spec["hostUsers"]:
        return
    if spec.get("hostNetwork"):
        message = "beside hostUsers: false it needs the feature UserNamespacesHostNetworkSupport"
        site.report(TPL_FEATURE, message, "hostNetwork")
    for name in ("hostPID", "hostIPC"):
        if spec.get(name):
            site.report(TPL_HOST_USERS, "must not be true where hostUsers is false", name)
