"""DNS of a pod: its policy, and its own servers, search domains and options."""

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from pumice.api.names import SUBDOMAIN_LENGTH
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.doubtful import TPL_DOUBTFUL
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import one_of, quoted

__all__ = ["RULES", "address_problem", "dns_config", "dns_policy", "odd_address"]

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

RULES = (TPL_DNS_POLICY, TPL_DNS_CONFIG)

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


def odd_address(site: Site, text: str, field: str) -> None:
    """Say that an address, which is one, is not written as all others write it."""
    usual = str(ip_address(text))
    if usual != text:
        site.report(TPL_DOUBTFUL, f"is usually written {usual}, found {quoted(text)}", field)


def dns_policy(site: Site, spec: Raw) -> None:
    """Check `dnsPolicy`, and that None has servers to go with it."""
    policy = spec["dnsPolicy"] or "ClusterFirst"
    one_of(site, TPL_DNS_POLICY, policy, _POLICIES, "dnsPolicy")
    if policy == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        message = "must be set where dnsPolicy is None, found none"
        site.report(TPL_DNS_POLICY, message, "dnsConfig.nameservers")


def dns_config(site: Site, spec: Raw) -> None:
    """Check `dnsConfig`."""
    config = spec["dnsConfig"]
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(servers) > _MOST_SERVERS:
        message = f"must have at most {_MOST_SERVERS}, found {len(servers)}"
        site.report(TPL_DNS_CONFIG, message, "dnsConfig.nameservers", "FieldValueTooMany")
    for index, server in enumerate(servers):
        if problem := address_problem(server):
            site.report(TPL_DNS_CONFIG, problem, f"dnsConfig.nameservers[{index}]")
        else:
            odd_address(site, server, f"dnsConfig.nameservers[{index}]")
    _searches(site, searches)
    for index, option in entries(config.get("options")):
        if not option.get("name"):
            field = f"dnsConfig.options[{index}].name"
            site.report(TPL_DNS_CONFIG, "must be set, found none", field)


def _searches(site: Site, searches: list[str]) -> None:
    if len(searches) > _MOST_SEARCHES:
        message = f"must have at most {_MOST_SEARCHES}, found {len(searches)}"
        site.report(TPL_DNS_CONFIG, message, "dnsConfig.searches", "FieldValueTooMany")
    length = len(" ".join(searches))
    if length > _LONGEST_SEARCHES:
        message = f"must have at most {_LONGEST_SEARCHES} characters in all, found {length}"
        site.report(TPL_DNS_CONFIG, message, "dnsConfig.searches", "FieldValueTooLong")
    for index, search in enumerate(searches):
        domain = search.removesuffix(".")
        good = search == "." or (len(domain) <= SUBDOMAIN_LENGTH and _SEARCH.fullmatch(domain))
        if not good:
            message = f"must be a domain, or a single dot, found {quoted(search)}"
            site.report(TPL_DNS_CONFIG, message, f"dnsConfig.searches[{index}]")
