"""Names of a pod as a host, names it knows other hosts by, and its DNS."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from pumice.api.names import SUBDOMAIN_LENGTH, dns_label_problem, dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.shapes import (
    at_most,
    name,
    one_of,
    quoted,
    refused,
    required,
    unique,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Check, Row

__all__ = ["ROWS"]

TPL_DNS_POLICY = Rule(
    "TPL-DNS-POLICY",
    "dnsPolicy is ClusterFirst, ClusterFirstWithHostNet, Default or None, and None comes with nameservers",
    "Without any server no name could be resolved.",
    "dnsPolicy: None",
)
TPL_DNS_CONFIG = Rule(
    "TPL-DNS-CONFIG",
    "dnsConfig has up to 3 addresses of servers, up to 32 domains of 2048 characters, and options with names",
    "These are the limits of the resolver in every container.",
    "dnsConfig: {nameservers: [dns.example.com]}",
)
TPL_HOSTNAME = refused(
    "TPL-HOSTNAME",
    "hostname and subdomain are DNS labels; hostnameOverride is a domain of 64 characters at most",
    "hostname: worker.example.com",
)
TPL_HOST_ALIAS = Rule(
    "TPL-HOST-ALIAS",
    "hostAliases give names to IP addresses",
    "They become lines of /etc/hosts.",
    "hostAliases: [{ip: database, hostnames: [db]}]",
)

_LONGEST_OVERRIDE = 64
_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_MOST_SERVERS = 3
_MOST_SEARCHES = 32
_LONGEST_SEARCHES = 2048
_SEARCH_LABEL = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = re.compile(rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*", re.ASCII)


@lru_cache(maxsize=1024)
def address_problem(text: str) -> str | None:
    """Say why a text is no IP address, or None when it is."""
    try:
        found = ip_address(text)
    except ValueError:
        return f"must be an IP address, found {quoted(text)}"
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            return f"must be an IP address without a zone, found {quoted(text)}"
        if found.ipv4_mapped is not None:
            return f"must be {found.ipv4_mapped}, not its IPv6 form, found {quoted(text)}"
    return None


def _address(rule: Rule) -> Check:
    """An address, which had better be written as all others write it."""

    def check(site: Site, found: str, field: str, _: Raw) -> None:
        if problem := address_problem(found):
            site.report(rule, problem, field)
        elif (usual := str(ip_address(found))) != found:
            message = f"is usually written {usual}, found {quoted(found)}"
            site.report(TPL_DOUBTFUL, message, field)

    return check


def _dns_policy(site: Site, policy: str, _: str, spec: Raw) -> None:
    """Check that None has servers to go with it."""
    if policy == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        message = "must be set where dnsPolicy is None, found none"
        site.report(TPL_DNS_POLICY, message, "dnsConfig.nameservers")


def _searches(site: Site, searches: list[str], field: str, _: Raw) -> None:
    length = len(" ".join(searches))
    if length > _LONGEST_SEARCHES:
        message = f"must have at most {_LONGEST_SEARCHES} characters in all, found {length}"
        site.report(TPL_DNS_CONFIG, message, field, "FieldValueTooLong")
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        good = search == "." or (len(domain) <= SUBDOMAIN_LENGTH and _SEARCH.fullmatch(domain))
        if not good:
            message = f"must be a domain, or a single dot, found {quoted(search)}"
            site.report(TPL_DNS_CONFIG, message, f"{field}[{index}]")


def _hostname_override(site: Site, found: str, field: str, spec: Raw) -> None:
    """Check `hostnameOverride`, which replaces what Kubernetes would call the pod."""
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            site.report(TPL_HOSTNAME, f"must not be set where {other} is true", field)
    if problem := dns_subdomain_problem(found):
        site.report(TPL_HOSTNAME, problem, field)
    elif len(found) > _LONGEST_OVERRIDE:
        message = f"must be at most {_LONGEST_OVERRIDE} characters, found {len(found)}"
        site.report(TPL_HOSTNAME, message, field, "FieldValueTooLong")


ROWS = (
    Row("hostname|subdomain", name(TPL_HOSTNAME, dns_label_problem, empty=True)),
    Row("hostnameOverride", _hostname_override),
    Row(
        "hostAliases",
        unique(TPL_DOUBTFUL, "ip", unless=address_problem, words="is already the address of"),
    ),
    Row("hostAliases[].ip", _address(TPL_HOST_ALIAS), ""),
    Row("hostAliases[].hostnames[]", name(TPL_HOST_ALIAS, dns_subdomain_problem)),
    Row("dnsPolicy", one_of(TPL_DNS_POLICY, _POLICIES, empty=True)),
    Row("dnsPolicy", _dns_policy),
    Row(
        "dnsConfig.nameservers",
        at_most(TPL_DNS_CONFIG, _MOST_SERVERS, "FieldValueTooMany"),
    ),
    Row("dnsConfig.nameservers[]", _address(TPL_DNS_CONFIG)),
    Row("dnsConfig.searches", at_most(TPL_DNS_CONFIG, _MOST_SEARCHES, "FieldValueTooMany")),
    Row("dnsConfig.searches", _searches),
    Row("dnsConfig.options[].name", required(TPL_DNS_CONFIG, reason=None), ""),
)
"""Fields of a pod's spec."""
