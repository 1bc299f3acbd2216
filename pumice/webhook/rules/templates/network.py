"""Hostnames, host aliases and DNS of a pod, and ports of containers and of the node."""

import re
from ipaddress import IPv6Address, ip_address

from pumice.api import names
from pumice.api.json_words import quoted
from pumice.api.meta import Raw
from pumice.webhook.rules.templates.shapes import TPL_DOUBTFUL, FieldRule, refused, stricter
from pumice.webhook.rules.templates.table import HostPort, Row, Site, compiled

TPL_DNS_POLICY = FieldRule(
    "TPL-DNS-POLICY",
    "dnsPolicy is ClusterFirst, ClusterFirstWithHostNet, Default or None, and None comes with nameservers",
    "Without a nameserver no name could be resolved.",
    "dnsPolicy: None",
)
TPL_DNS_CONFIG = FieldRule(
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
TPL_HOST_ALIAS = FieldRule(
    "TPL-HOST-ALIAS",
    "hostAliases give names to IP addresses",
    "They become lines of /etc/hosts.",
    "hostAliases: [{ip: database, hostnames: [db]}]",
)
TPL_PORT = refused(
    "TPL-PORT",
    "ports have a number from 1 to 65535, a protocol that exists and a name of 15 characters at most",
    "ports: [{containerPort: 70000}]",
)
TPL_PORT_DUP = refused(
    "TPL-PORT-DUP",
    "no two ports of a container share a name, and no two of a pod a port of the node",
    "ports: [{name: http, containerPort: 80}, {name: http, containerPort: 81}]",
    reason="FieldValueDuplicate",
)
TPL_HOST_PORT = FieldRule(
    "TPL-HOST-PORT",
    "in the network of the node, hostPort is containerPort",
    "The container shares the node's network, so both ports are the same.",
    "hostNetwork: true, containers: [{ports: [{containerPort: 80, hostPort: 8080}]}]",
)
TPL_HOST_PORT_SHARED = stricter(
    "TPL-HOST-PORT-SHARED",
    "in the network of the node, no two containers have the same port",
    "Kubernetes takes the template, fills hostPort in for each pod, and then refuses the pod.",
    "hostNetwork: true, containers: [{ports: [{containerPort: 80}]}, {ports: [{containerPort: 80}]}]",
    reason="FieldValueDuplicate",
    compares=True,
)

_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_LONGEST_SEARCHES = 2048
_SEARCH_LABEL = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = re.compile(rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*", re.ASCII)


def _address_problem(text: str) -> str | None:
    """Explain why a string is not a valid IP address; None if it is."""
    try:
        found = ip_address(text)
    except ValueError:
        return f"must be a valid IP address, found {quoted(text)}"
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            return f"must be a valid IP address without a zone, found {quoted(text)}"
        if found.ipv4_mapped is not None:
            return f"must be a valid IP address: write {found.ipv4_mapped}, not its IPv6 form, found {quoted(text)}"
    return None


def _notation_problem(address: str) -> str | None:
    if _address_problem(address) or (usual := str(ip_address(address))) == address:
        return None
    return f"is usually written {usual}, found {quoted(address)}"


def _dns_policy(site: Site, policy: str, _: str, spec: Raw) -> None:
    if policy == "None" and not spec.get("dnsConfig", {}).get("nameservers"):
        missing = "at least one DNS nameserver" if "dnsConfig" in spec else "`dnsConfig`"
        message = f"must provide {missing} when `dnsPolicy` is None, found none"
        site.report(TPL_DNS_POLICY, message, "dnsConfig.nameservers")


def _length_problem(_: Site, searches: list[str], _owner: Raw) -> str:
    length = len(" ".join(searches))
    wrong = f"must have at most {_LONGEST_SEARCHES} characters in all, found {length}"
    return wrong if length > _LONGEST_SEARCHES else ""


def _is_search(found: str) -> bool:
    domain = found.removesuffix(".")
    return found == "." or (
        len(domain) <= names.SUBDOMAIN_LENGTH and bool(_SEARCH.fullmatch(domain))
    )


_DOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lowercase letters, digits, '-', '.' and in a search path '_', "
    "unless it is a single dot"
)
_usual_address = TPL_DOUBTFUL.valid(_notation_problem)
_NO_FQDN = "may not be specified when setHostnameAsFQDN is true"
ROWS = (
    Row("hostname|subdomain", TPL_HOSTNAME.valid(names.dns_label_problem, empty=True)),
    Row("hostnameOverride", TPL_HOSTNAME.valid(names.dns_subdomain_problem)),
    Row("hostnameOverride", TPL_HOSTNAME.at_most(64, "FieldValueTooLong", " characters")),
    Row("hostnameOverride", TPL_HOSTNAME.excludes("setHostnameAsFQDN", _NO_FQDN)),
    Row("hostnameOverride", TPL_HOSTNAME.excludes("hostNetwork")),
    Row("hostAliases", TPL_DOUBTFUL.unique("ip", words="is already the address of")),
    Row("hostAliases[].ip", TPL_HOST_ALIAS.valid(_address_problem), ""),
    Row("hostAliases[].ip", _usual_address),
    Row("hostAliases[].hostnames[]", TPL_HOST_ALIAS.valid(names.dns_subdomain_problem)),
    Row("dnsPolicy", TPL_DNS_POLICY.one_of(*_POLICIES, empty=True)),
    Row("dnsPolicy", _dns_policy),
    Row("dnsConfig.nameservers", TPL_DNS_CONFIG.at_most(3, "FieldValueTooMany", " nameservers")),
    Row("dnsConfig.nameservers[]", TPL_DNS_CONFIG.valid(_address_problem)),
    Row("dnsConfig.nameservers[]", _usual_address),
    Row("dnsConfig.searches", TPL_DNS_CONFIG.at_most(32, "FieldValueTooMany", " search paths")),
    Row("dnsConfig.searches", TPL_DNS_CONFIG.judged(_length_problem, "FieldValueTooLong")),
    Row("dnsConfig.searches[]", TPL_DNS_CONFIG.matching(_DOMAIN, _is_search)),
    Row("dnsConfig.options[].name", TPL_DNS_CONFIG.required(reason=None), ""),
)
"""Fields of a pod's spec."""


LARGEST_PORT = 65535
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_number = TPL_PORT.within(1, LARGEST_PORT)


def _host_ports_of_init(site: Site, ports: list[Raw], _: str, _container: Raw) -> None:
    _take(site, ports, {})  # init containers run one after the other, so each is checked by itself


def _take(site: Site, ports: list[Raw], taken: dict[HostPort, tuple[str, bool]]) -> None:
    """Record host ports; with `hostNetwork` the default of a host port is the container port."""
    for index, port in enumerate(ports):
        outside = port.get("hostPort")
        implied = not outside and site.pod.host_network
        number = port.get("containerPort") if implied else outside
        if not number:
            continue
        field = f"ports[{index}].hostPort"
        if not implied:
            _number(site, number, field, port)
        key = (port.get("protocol") or "TCP", port.get("hostIP", ""), number)
        where = f"{site.path}.ports[{index}]"
        first, first_implied = taken.setdefault(key, (where, implied))
        if first != where:
            rule = TPL_HOST_PORT_SHARED if implied or first_implied else TPL_PORT_DUP
            message = f"{number} is already the port of the node that {first} takes"
            site.report(rule, message, field)


def _in_network(site: Site, ports: list[Raw], field: str, _: Raw) -> None:
    """Check ports of a regular container in the networks of node and pod, which all of them share."""
    _take(site, ports, site.pod.host_ports)
    if not site.pod.host_network:
        _clashes(site, ports)
        return
    for index, port in enumerate(ports):
        inside, outside = port.get("containerPort"), port.get("hostPort", 0)
        if inside is not None and outside not in (0, inside):
            message = f"must match `containerPort` when `hostNetwork` is true ({inside}), found "
            site.report(TPL_HOST_PORT, f"{message}{outside}", f"{field}[{index}].hostPort")


def _clashes(site: Site, ports: list[Raw]) -> None:
    """Check ports against each other and those of earlier containers; a pod has one network for all.

    Source: the warnings that a Kubernetes API server of version 1.36 gives for pods.
    """
    for index, port in enumerate(ports):
        where = f"{site.path}.ports[{index}]"
        if port.get("hostIP") and not port.get("hostPort"):
            message = "has no effect without hostPort"
            site.report(TPL_DOUBTFUL, message, f"ports[{index}].hostIP")
        if number := port.get("containerPort"):
            key = (number, port.get("protocol") or "TCP")
            first, other = site.pod.ports.setdefault(key, (where, port))
            if first != where and _clash(port, other):
                message = f"{number} is already the port of {first}"
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].containerPort")
        if called := port.get("name"):
            first = site.pod.port_names.setdefault(called, where)
            if first.rpartition(".")[0] != site.path:
                owner = f"{first}, which the name refers to"
                message = f"{quoted(called)} is already the name of {owner}"
                site.report(TPL_DOUBTFUL, message, f"ports[{index}].name")


def _clash(port: Raw, other: Raw) -> bool:
    """True if two ports with the same number conflict without being refused."""
    numbers = {port.get("hostPort", 0), other.get("hostPort", 0)}
    # With the same address, too, they are the same port of the node, which is refused.
    differ = bool(port.get("hostIP")) is not bool(other.get("hostIP"))
    return 0 in numbers or (len(numbers) == 1 and differ)


_PORTS = compiled(
    Row("[].name", TPL_PORT.valid(names.port_name_problem, empty=True)),
    Row("[].containerPort", TPL_PORT.present(_number, "FieldValueRequired"), None),
    Row("[].protocol", TPL_PORT.one_of(*_PROTOCOLS, empty=True)),
    Row("", TPL_PORT_DUP.unique("name")),
)
CONTAINER_ROWS = (Row("ports", _PORTS), Row("ports", _in_network))
"""Fields of a regular container."""

INIT_ROWS = (Row("ports", _PORTS), Row("ports", _host_ports_of_init))
"""Fields of an init container."""
