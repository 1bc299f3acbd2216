"""Options of Windows: who a container runs as, and containers that are processes of the host."""

import re

from pumice.api.names import dns_subdomain_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted

__all__ = ["RULES", "host_processes", "windows_options"]

TPL_WINDOWS = Rule(
    "TPL-WINDOWS",
    "windowsOptions name a user and credentials that Windows could have",
    "Kubernetes refuses the pod otherwise.",
    'securityContext: {windowsOptions: {runAsUserName: "a\\\\b\\\\c"}}',
)
TPL_HOST_PROCESS = Rule(
    "TPL-HOST-PROCESS",
    "either all containers are processes of the host or none, and only in the host's network",
    "Windows cannot mix them in a pod.",
    "securityContext: {windowsOptions: {hostProcess: true}}",
    compares=True,
)

RULES = (TPL_WINDOWS, TPL_HOST_PROCESS)

_LARGEST_SPEC = 64 * 1024
_LONGEST_DOMAIN = 255
_LONGEST_USER = 104
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN = re.compile(
    r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_NOT_IN_USERS = frozenset('"/\\:;|=,+*?<>@[]')


def windows_options(site: Site, options: object, field: str) -> None:
    """Check `windowsOptions`, of a pod or of a container.

    Args:
        site: Where to report.
        options: The options.
        field: Where they are, from the site on.
    """
    if not isinstance(options, dict):
        return
    name = options.get("gmsaCredentialSpecName")
    if isinstance(name, str) and (problem := dns_subdomain_problem(name)):
        site.report(TPL_WINDOWS, problem, f"{field}.gmsaCredentialSpecName")
    spec = options.get("gmsaCredentialSpec")
    if isinstance(spec, str) and not 0 < len(spec.encode()) <= _LARGEST_SPEC:
        message = f"must have 1 to {_LARGEST_SPEC} bytes, found {len(spec.encode())}"
        site.report(TPL_WINDOWS, message, f"{field}.gmsaCredentialSpec")
    user = options.get("runAsUserName")
    if isinstance(user, str) and (problem := _user_problem(user)):
        site.report(TPL_WINDOWS, problem, f"{field}.runAsUserName")


def host_processes(site: Site, spec: Raw) -> None:
    """Check that containers agree on whether they are processes of the host.

    Args:
        site: Where the pod spec is.
        spec: The pod spec.
    """
    whole = _host_process(spec)
    flags: list[bool] = []
    for field in ("initContainers", "containers"):
        for index, container in entries(spec.get(field)):
            own = _host_process(container)
            if whole is not None and own is not None and own is not whole:
                message = f"must be {str(whole).lower()}, as for the pod, found {str(own).lower()}"
                where = f"{field}[{index}].securityContext.windowsOptions.hostProcess"
                site.report(TPL_HOST_PROCESS, message, where)
            flags.append(bool(whole if own is None else own))
    if not any(flags):
        return
    if not all(flags):
        message = f"{sum(flags)} of {len(flags)} containers are processes of the host, must be all or none"
        site.report(TPL_HOST_PROCESS, message)
    if spec.get("hostNetwork") is not True:
        message = "must be true for containers that are processes of the host"
        site.report(TPL_HOST_PROCESS, message, "hostNetwork")


def _host_process(owner: Raw) -> bool | None:
    """`securityContext.windowsOptions.hostProcess` of a pod or a container."""
    context = owner.get("securityContext")
    options = context.get("windowsOptions") if isinstance(context, dict) else None
    found = options.get("hostProcess") if isinstance(options, dict) else None
    return found if isinstance(found, bool) else None


def _user_problem(name: str) -> str | None:
    """Say why nobody on Windows is called so, or None when somebody could be."""
    parts = name.split("\\")
    domain, user = parts[0] if len(parts) > 1 else None, parts[-1]
    if not name or len(parts) > 2:
        problem = r"must be USER or DOMAIN\USER"
    elif any(ord(each) < 32 or ord(each) == 127 for each in name):
        problem = "must have no control characters"
    elif domain is not None and len(domain.encode()) > _LONGEST_DOMAIN:
        problem = f"must have a domain of at most {_LONGEST_DOMAIN} characters"
    elif domain is not None and not (_NETBIOS.fullmatch(domain) or _DOMAIN.fullmatch(domain)):
        problem = "must have a domain as NetBIOS or DNS have them"
    elif not user.strip(". ") or len(user.encode()) > _LONGEST_USER:
        problem = f"must have a user of 1 to {_LONGEST_USER} characters, not dots and spaces alone"
    elif not _NOT_IN_USERS.isdisjoint(user):
        problem = r'must have a user without "/\:;|=,+*?<>@[]'
    else:
        return None
    return f"{problem}, found {quoted(name)}"
