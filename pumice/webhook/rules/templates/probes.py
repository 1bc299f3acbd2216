"""Probes and lifecycle hooks of containers that keep running: what they do, and when."""

from pumice.api.names import header_name_problem, port_name_problem
from pumice.webhook.rules.templates.doubtful import TPL_DEPRECATED
from pumice.webhook.rules.templates.ports import LARGEST_PORT
from pumice.webhook.rules.templates.shapes import (
    exactly_one,
    name,
    one_of,
    present,
    refused,
    remark,
    required,
    within,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, below

__all__ = ["ROWS"]

TPL_PROBE = refused(
    "TPL-PROBE",
    "numbers of probes are 0 or more, and one success is enough where a failure restarts the container",
    "livenessProbe: {tcpSocket: {port: 80}, successThreshold: 2}",
)
TPL_HANDLER = refused(
    "TPL-HANDLER",
    "a probe or a hook does exactly one thing, and says all that it takes",
    "livenessProbe: {httpGet: {path: /healthz}}",
)

_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_GRACE = "terminationGracePeriodSeconds"
_PROBES = "livenessProbe|readinessProbe|startupProbe"
_RESTARTING = "livenessProbe|startupProbe"
_HOOKS = "lifecycle.postStart|preStop"


_port_name = name(TPL_HANDLER, port_name_problem)
_port_number = within(TPL_HANDLER, 1, LARGEST_PORT)


def _number_or_name(site: Site, port: int | str, field: str, owner: Raw) -> None:
    (_port_name if isinstance(port, str) else _port_number)(site, port, field, owner)


def _sleep(site: Site, seconds: int, field: str, _: Raw) -> None:
    grace = site.pod.grace
    if not 0 <= seconds <= grace:
        message = f"must be from 0 to terminationGracePeriodSeconds ({grace}), found {seconds}"
        site.report(TPL_HANDLER, message, field)


def _only_one_success(site: Site, threshold: int, field: str, _: Raw) -> None:
    if threshold > 1:
        site.report(TPL_PROBE, f"must be 1, found {threshold}", field)


_SOCKET_HOOK = "is not supported, the hook fails; use exec or httpGet instead"
_READINESS_GRACE = "must not be set: a container that is not ready goes on running"
_port = present(TPL_HANDLER, _number_or_name, "FieldValueRequired")
_ACTIONS = (
    Row("exec.command", required(TPL_HANDLER), ()),
    Row("httpGet|tcpSocket.port", _port, None),
    Row("httpGet.scheme", one_of(TPL_HANDLER, ("HTTP", "HTTPS"), empty=True)),
    Row("httpGet.httpHeaders[].name", name(TPL_HANDLER, header_name_problem), ""),
)
ROWS = (
    Row(_PROBES, exactly_one(TPL_HANDLER, _OF_PROBES, never=("sleep",))),
    Row(_HOOKS, exactly_one(TPL_HANDLER, _OF_HOOKS, never=("grpc",))),
    *below(_PROBES, _ACTIONS),
    *below(_HOOKS, _ACTIONS),
    Row(f"{_PROBES}.grpc.port", _port, None),
    Row(f"{_HOOKS}.tcpSocket", remark(TPL_DEPRECATED, _SOCKET_HOOK)),
    Row(f"{_HOOKS}.sleep.seconds", _sleep),
    Row(
        f"{_PROBES}.initialDelaySeconds|timeoutSeconds|periodSeconds|successThreshold|failureThreshold",
        within(TPL_PROBE, 0),
    ),
    Row(f"{_RESTARTING}.successThreshold", _only_one_success),
    Row(f"{_RESTARTING}.{_GRACE}", within(TPL_PROBE, 1)),
    Row(f"readinessProbe.{_GRACE}", remark(TPL_PROBE, _READINESS_GRACE)),
)
"""Fields of a container that keeps running."""
