"""Deadlines, restarts, probes and hooks of pods and containers, and preemption by pods."""

from pumice.api.meta import Raw
from pumice.api.names import header_name_problem, port_name_problem
from pumice.webhook.rules.templates import resources
from pumice.webhook.rules.templates.network import LARGEST_PORT
from pumice.webhook.rules.templates.shapes import TPL_DEPRECATED, TPL_DOUBTFUL, refused, warned
from pumice.webhook.rules.templates.table import Row, Site, below, compiled

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
        site.report(TPL_OVERHEAD, "must not be set without runtimeClassName", field)
    limits = resources.amounts(site, found, field, resources.of_container)
    for rule, _, message in resources.conflicts(limits, {}):
        site.report(rule, message, field)


_exit_codes = compiled(
    Row("operator", TPL_RESTART_RULES.one_of("In", "NotIn"), ""),
    Row("values", TPL_RESTART_RULES.at_most(255)),
)


ROWS = (
    Row("restartPolicy", TPL_RESTART_POLICY.one_of("Always", "OnFailure", "Never", empty=True)),
    Row("activeDeadlineSeconds", TPL_DEADLINE.within(1, 2**31 - 1)),
    Row("terminationGracePeriodSeconds", TPL_DOUBTFUL.within(0, words=_GRACE_WORDS)),
    Row("preemptionPolicy", TPL_PREEMPTION.one_of(*_PREEMPTION_POLICIES)),
    Row("preemptionPolicy", TPL_PRIORITY.breaking(_NEVER, lambda _, found, _o: found == "Never")),
    Row("priority", TPL_PRIORITY.within(0, 0, "must be left to the pod's PriorityClass")),
    Row("overhead", _overhead),
)
"""Fields of a pod's spec."""

_RULE_ROWS = (
    Row("restartPolicy", TPL_RESTART.one_of("Always", "Never", "OnFailure")),
    Row("restartPolicyRules", TPL_RESTART_RULES.at_most(20)),
    Row("restartPolicyRules[].action", TPL_RESTART_RULES.one_of(*_RESTARTS), ""),
    Row("restartPolicyRules[].exitCodes", TPL_RESTART_RULES.present(_exit_codes), None),
)
CONTAINER_ROWS = (Row("restartPolicyRules", TPL_RESTART_RULES.needs("restartPolicy")), *_RULE_ROWS)
"""Fields of a regular container."""

_NO_POLICY = "must specify restartPolicy when restart rules are used"
INIT_ROWS = (
    Row("restartPolicyRules", TPL_RESTART.needs("restartPolicy", _NO_POLICY)),
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


_port_name = TPL_HANDLER.valid(port_name_problem)
_port_number = TPL_HANDLER.within(1, LARGEST_PORT)


def _number_or_name(site: Site, port: int | str, field: str, owner: Raw) -> None:
    (_port_name if isinstance(port, str) else _port_number)(site, port, field, owner)


def _sleep_problem(site: Site, seconds: int, _: Raw) -> str:
    grace: int = site.pod.spec.get("terminationGracePeriodSeconds", 30)
    most = grace if grace >= 0 else 1  # as Kubernetes reads it
    if 0 <= seconds <= most:
        return ""
    return f"must be between 0 and terminationGracePeriodSeconds ({most}), found {seconds}"


_SOCKET_HOOK = "is not supported, the hook fails; use exec or httpGet instead"
_READINESS_GRACE = (
    "must not be set for readinessProbes: a container that is not ready is not stopped"
)
_HANDLERS = "must specify a handler type: ", "may not specify more than 1 handler type"
_port = TPL_HANDLER.present(_number_or_name, "FieldValueRequired")
_ACTIONS = (
    Row("exec.command", TPL_HANDLER.required(), ()),
    Row("httpGet|tcpSocket.port", _port, None),
    Row("httpGet.scheme", TPL_HANDLER.one_of("HTTP", "HTTPS", empty=True)),
    Row("httpGet.httpHeaders[].name", TPL_HANDLER.valid(header_name_problem), ""),
)
PROBE_ROWS = (
    Row(_PROBES, TPL_HANDLER.exactly_one(_OF_PROBES, *_HANDLERS, never=("sleep",))),
    Row(_HOOKS, TPL_HANDLER.exactly_one(_OF_HOOKS, *_HANDLERS, never=("grpc",))),
    *below(_PROBES, *_ACTIONS),
    *below(_HOOKS, *_ACTIONS),
    Row(f"{_PROBES}.grpc.port", _port, None),
    Row(f"{_HOOKS}.tcpSocket", TPL_DEPRECATED.breaking(_SOCKET_HOOK)),
    Row(f"{_HOOKS}.sleep.seconds", TPL_HANDLER.judged(_sleep_problem)),
    Row(f"{_PROBES}.{_COUNTS}", TPL_PROBE.within(0)),
    Row(f"{_RESTARTING}.successThreshold", TPL_PROBE.within(0, 1, "must be 1")),
    Row(f"{_RESTARTING}.{_GRACE}", TPL_PROBE.within(1)),
    Row(f"readinessProbe.{_GRACE}", TPL_PROBE.breaking(_READINESS_GRACE)),
)
"""Fields of a container that keeps running."""
