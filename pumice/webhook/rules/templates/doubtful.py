"""Values that Kubernetes accepts with a warning, or only with a feature that is off by default.

The API server says so in a warning when a pod is created; pods of a Job are made by a controller, so Pumice warns when
the Job is applied. Each file warns about its own fields; this one has the shared warnings.

Source: the warnings that a Kubernetes API server of version 1.36 gives for pods, and the fields that its OpenAPI
documents mark as deprecated.
"""

from pumice.api.json_words import quoted
from pumice.webhook.rules.templates.shapes import FieldRule, warned
from pumice.webhook.rules.templates.site import Raw, Site

TPL_FEATURE = FieldRule(
    "TPL-FEATURE",
    "a template needs no feature of Kubernetes that is off by default",
    "Kubernetes refuses the pod where the feature is off; where it is on, turn this rule off.",
    "tolerations: [{key: memory, operator: Gt, value: '64'}]",
    reason="FieldValueNotSupported",
)
TPL_DEPRECATED = warned(
    "TPL-DEPRECATED",
    "a template uses nothing that Kubernetes has deprecated",
    "Most deprecated fields have no effect: pods wait for nodes with an old label, or "
    "for a volume that no node can mount.",
    "nodeSelector: {beta.kubernetes.io/arch: amd64}",
)
TPL_DOUBTFUL = warned(
    "TPL-DOUBTFUL",
    "a template has no field without effect, or with an effect that is probably not meant",
    "Kubernetes admits it with a warning, which only the controller that creates the pods receives.",
    "resources: {limits: {memory: 512m}}",
)

NODE_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "taints and tolerations",
    "app.kubernetes.io/created-by": "",
}
"""Deprecated labels of nodes with their successors; the last one has none."""
ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/affinity": "spec.affinity",
    "scheduler.alpha.kubernetes.io/critical-pod": "spec.priorityClassName",
    "scheduler.alpha.kubernetes.io/tolerations": "spec.tolerations",
    "security.alpha.kubernetes.io/sysctls": "spec.securityContext.sysctls",
    "security.alpha.kubernetes.io/unsafe-sysctls": "spec.securityContext.sysctls",
}
"""Annotations without an effect, with the fields that replace them."""


def node_label(site: Site, key: str, field: str, _: Raw) -> None:
    """Warn about a deprecated label of nodes."""
    if key in NODE_LABELS:
        successor = NODE_LABELS[key]
        message = f"{key} is a deprecated node label"
        message += f"; use {successor} instead" if successor else ""
        site.report(TPL_DEPRECATED, message, field)


def annotation(site: Site, key: str, successor: str, problem: str = "has no effect") -> None:
    """Warn about an annotation of the pod that a field has replaced."""
    site.report(TPL_DEPRECATED, f"{problem}; use {successor} instead", key)


def overlaps(site: Site, files: list[tuple[str, str]]) -> None:
    """Check that no file of a volume is also a directory or another file of it."""
    above, above_at = "", ""
    for path, at in sorted((f"{path.rstrip('/')}/", at) for path, at in files if path):
        if above and path.startswith(above):
            taken = f"{quoted(above[:-1])} is the file of {above_at}"
            site.report(TPL_DOUBTFUL, f"{quoted(path[:-1])} is not free: {taken}", at)
        else:
            above, above_at = path, at
