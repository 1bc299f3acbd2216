"""Handlers: what a probe or a hook does, and whether that can be done."""

from pumice.api.names import header_name_problem, port_name_problem
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.deprecated import socket_hook
from pumice.webhook.rules.templates.ports import port_number_problem
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import is_int, members, one_of

__all__ = ["RULES", "hook", "probe_handler"]

TPL_HANDLER = Rule(
    "TPL-HANDLER",
    "a probe or a hook does exactly one thing, and says all that it takes",
    "Kubernetes refuses the pod otherwise.",
    "livenessProbe: {httpGet: {path: /healthz}}",
)

RULES = (TPL_HANDLER,)

_SCHEMES = ("HTTP", "HTTPS")
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")


def probe_handler(site: Site, probe: Raw, field: str) -> None:
    """Check what a probe does.

    Args:
        site: Where the container is.
        probe: The probe.
        field: Where the probe is, from the site on.
    """
    for kind in members(site, TPL_HANDLER, probe, _OF_PROBES, field, never=("sleep",)):
        _action(site, kind, probe[kind], f"{field}.{kind}")


def hook(site: Site, found: Raw, grace: int | None, field: str) -> None:
    """Check what a lifecycle hook does.

    Args:
        site: Where the container is.
        found: The hook.
        grace: Seconds that the pod may take to end; None when nobody can tell.
        field: Where the hook is, from the site on.
    """
    for kind in members(site, TPL_HANDLER, found, _OF_HOOKS, field, never=("grpc",)):
        if kind == "sleep":
            _sleep(site, found[kind], grace, f"{field}.{kind}.seconds")
        else:
            if kind == "tcpSocket":
                socket_hook(site, f"{field}.{kind}")
            _action(site, kind, found[kind], f"{field}.{kind}")


def _action(site: Site, kind: str, action: object, field: str) -> None:
    if not isinstance(action, dict):
        return
    if kind == "exec":
        if not action.get("command"):
            message = "must be set, found none"
            site.report(TPL_HANDLER, message, f"{field}.command", "FieldValueRequired")
        return
    _port(site, action.get("port"), f"{field}.port")
    if kind == "httpGet":
        one_of(site, TPL_HANDLER, action.get("scheme") or None, _SCHEMES, f"{field}.scheme")
        for index, header in entries(action.get("httpHeaders")):
            name = header.get("name") or ""
            if isinstance(name, str) and (problem := header_name_problem(name)):
                site.report(TPL_HANDLER, problem, f"{field}.httpHeaders[{index}].name")


def _sleep(site: Site, action: object, grace: int | None, field: str) -> None:
    if not isinstance(action, dict) or grace is None:
        return
    seconds = action.get("seconds", 0)
    if is_int(seconds) and not 0 <= seconds <= grace:
        message = f"must be from 0 to terminationGracePeriodSeconds ({grace}), found {seconds}"
        site.report(TPL_HANDLER, message, field)


def _port(site: Site, port: object, field: str) -> None:
    """Check a port, by number or by name."""
    if port is None:
        site.report(TPL_HANDLER, "must be set, found none", field, "FieldValueRequired")
        return
    problem = None
    if isinstance(port, str):
        problem = port_name_problem(port)
    elif is_int(port):
        problem = port_number_problem(port)
    if problem:
        site.report(TPL_HANDLER, problem, field)
