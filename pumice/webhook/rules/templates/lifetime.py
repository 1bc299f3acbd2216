"""Deadlines, restarts, probes and hooks of pods and containers, and preemption by pods."""

from functools import partial

from pumice.api.names import header_name_problem, port_name_problem
from pumice.webhook.rules.rule import warned
from pumice.webhook.rules.templates import resources
from pumice.webhook.rules.templates.doubtful import TPL_DEPRECATED, TPL_DOUBTFUL
from pumice.webhook.rules.templates.network import LARGEST_PORT
from pumice.webhook.rules.templates.shapes import (
    at_most,
    breaking,
    exactly_one,
    name,
    needs,
    one_of,
    present,
    refused,
    remark,
    required,
    within,
)
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.table import Row, below, compiled

TPL_RESTART = refused(
    "TPL-RESTART",
    "restartPolicy of a container is Always, Never or OnFailure; an init container with rules has one",
    "initContainers: [{name: proxy, image: envoy, restartPolicy: Sometimes}]",
)
TPL_RESTART_RULES = refused(
    "TPL-RESTART-RULES",
    "restartPolicyRules go by exit codes, and come with a restartPolicy",
    "containers: [{name: main, image: busybox, restartPolicyRules: [{action: Restart}]}]",
    later=True,
)
TPL_RESTART_POLICY = refused(
    "TPL-RESTART-POLICY",
    "restartPolicy is Always, OnFailure or Never",
    "restartPolicy: Sometimes",
    reason="FieldValueNotSupported",
)
TPL_DEADLINE = refused(
    "TPL-DEADLINE",
    "activeDeadlineSeconds is from 1 to 2147483647",
    "activeDeadlineSeconds: 0",
)
TPL_PREEMPTION = refused(
    "TPL-PREEMPTION",
    "preemptionPolicy is PreemptLowerPriority or Never",
    "preemptionPolicy: Sometimes",
    reason="FieldValueNotSupported",
)
TPL_PRIORITY = warned(
    "TPL-PRIORITY",
    "priority and preemptionPolicy are left to the priority class",
    "Kubernetes refuses a pod whose values differ from those of its class.",
    "priority: 1000",
)
TPL_OVERHEAD = refused(
    "TPL-OVERHEAD",
    "overhead comes from a runtime class",
    "overhead: {cpu: 250m}",
    reason="FieldValueForbidden",
    later=True,
    compares=True,
)
TPL_PROBE = refused(
    "TPL-PROBE",
    "numbers of probes are 0 or more; successThreshold of liveness and startup probes is 1",
    "livenessProbe: {tcpSocket: {port: 80}, successThreshold: 2}",
)
TPL_HANDLER = refused(
    "TPL-HANDLER",
    "a probe or a hook has exactly one handler, with all fields that the handler needs",
    "livenessProbe: {httpGet: {path: /healthz}}",
)

_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_GRACE_WORDS = "must be greater than or equal to 0 (a negative value counts as 1)"
_RESTARTS = ("Restart", "RestartAllContainers")
_NEVER = "Never must be the policy of the pod's PriorityClass; leave it to the class"


def _overhead(site: Site, found: Raw, field: str, spec: Raw) -> None:
    """Check `overhead`: it must come from a runtime class and be valid in one."""
    if not spec.get("runtimeClassName"):
        message = "must not be set without runtimeClassName"
        site.report(TPL_OVERHEAD, message, field)
    limits = resources.amounts(site, found, field, resources.of_container)
    for rule, _, message in resources.conflicts(limits, {}):
        site.report(rule, message, field)


_exit_codes = compiled(
    (
        Row("operator", one_of(TPL_RESTART_RULES, ("In", "NotIn")), ""),
        Row("values", at_most(TPL_RESTART_RULES, 255)),
    )
)


ROWS = (
    Row("restartPolicy", one_of(TPL_RESTART_POLICY, ("Always", "OnFailure", "Never"), empty=True)),
    Row("activeDeadlineSeconds", within(TPL_DEADLINE, 1, 2**31 - 1)),
    Row("terminationGracePeriodSeconds", within(TPL_DOUBTFUL, 0, words=_GRACE_WORDS)),
    Row("preemptionPolicy", one_of(TPL_PREEMPTION, _PREEMPTION_POLICIES)),
    Row("preemptionPolicy", breaking(TPL_PRIORITY, _NEVER, lambda _, found, _o: found == "Never")),
    Row("priority", within(TPL_PRIORITY, 0, 0, "must be left to the pod's PriorityClass")),
    Row("overhead", _overhead),
)
"""Fields of a pod's spec."""

_RULE_ROWS = (
    Row("restartPolicy", one_of(TPL_RESTART, ("Always", "Never", "OnFailure"))),
    Row("restartPolicyRules", at_most(TPL_RESTART_RULES, 20)),
    Row("restartPolicyRules[].action", one_of(TPL_RESTART_RULES, _RESTARTS), ""),
    Row("restartPolicyRules[].exitCodes", present(TPL_RESTART_RULES, _exit_codes), None),
)
CONTAINER_ROWS = (Row("restartPolicyRules", needs(TPL_RESTART_RULES, "restartPolicy")), *_RULE_ROWS)
"""Fields of a regular container."""

_NO_POLICY = "must specify restartPolicy when restart rules are used"
INIT_ROWS = (
    Row("restartPolicyRules", needs(TPL_RESTART, "restartPolicy", _NO_POLICY)),
    *_RULE_ROWS,
)
"""Fields of an init container; of these Volcano, too, checks `restartPolicy`."""


_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_GRACE = "terminationGracePeriodSeconds"
_PROBES = "livenessProbe|readinessProbe|startupProbe"
_COUNTS = "initialDelaySeconds|timeoutSeconds|periodSeconds|successThreshold|failureThreshold"
_RESTARTING = "livenessProbe|startupProbe"
_HOOKS = "lifecycle.postStart|preStop"


_port_name = name(TPL_HANDLER, port_name_problem)
_port_number = within(TPL_HANDLER, 1, LARGEST_PORT)


def _number_or_name(site: Site, port: int | str, field: str, owner: Raw) -> None:
    (_port_name if isinstance(port, str) else _port_number)(site, port, field, owner)


def _sleep(site: Site, seconds: int, field: str, _: Raw) -> None:
    grace = site.pod.grace
    if not 0 <= seconds <= grace:
        message = f"must be between 0 and terminationGracePeriodSeconds ({grace}), found {seconds}"
        site.report(TPL_HANDLER, message, field)


_SOCKET_HOOK = "is not supported, the hook fails; use exec or httpGet instead"
_READINESS_GRACE = (
    "must not be set for readinessProbes: a container that is not ready is not stopped"
)
_NO_HANDLER, _HANDLERS = "must specify a handler type: ", "may not specify more than 1 handler type"
_one_handler = partial(exactly_one, TPL_HANDLER, neither=_NO_HANDLER, several=_HANDLERS)
_port = present(TPL_HANDLER, _number_or_name, "FieldValueRequired")
_ACTIONS = (
    Row("exec.command", required(TPL_HANDLER), ()),
    Row("httpGet|tcpSocket.port", _port, None),
    Row("httpGet.scheme", one_of(TPL_HANDLER, ("HTTP", "HTTPS"), empty=True)),
    Row("httpGet.httpHeaders[].name", name(TPL_HANDLER, header_name_problem), ""),
)
PROBE_ROWS = (
    Row(_PROBES, _one_handler(_OF_PROBES, never=("sleep",))),
    Row(_HOOKS, _one_handler(_OF_HOOKS, never=("grpc",))),
    *below(_PROBES, _ACTIONS),
    *below(_HOOKS, _ACTIONS),
    Row(f"{_PROBES}.grpc.port", _port, None),
    Row(f"{_HOOKS}.tcpSocket", remark(TPL_DEPRECATED, _SOCKET_HOOK)),
    Row(f"{_HOOKS}.sleep.seconds", _sleep),
    Row(f"{_PROBES}.{_COUNTS}", within(TPL_PROBE, 0)),
    Row(f"{_RESTARTING}.successThreshold", within(TPL_PROBE, 0, 1, "must be 1")),
    Row(f"{_RESTARTING}.{_GRACE}", within(TPL_PROBE, 1)),
    Row(f"readinessProbe.{_GRACE}", remark(TPL_PROBE, _READINESS_GRACE)),
)
"""Fields of a container that keeps running."""
