"""Gates: conditions that keep a pod from being scheduled, or from being ready."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.labels import key_problem
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted

__all__ = ["RULES", "readiness_gates", "scheduling_gates"]

TPL_GATE = Rule(
    "TPL-GATE",
    "gates have qualified names, and no two scheduling gates the same",
    "Kubernetes refuses the pod otherwise.",
    "schedulingGates: [{name: wait for data}]",
)
TPL_GATE_NODE = Rule(
    "TPL-GATE-NODE",
    "a pod with scheduling gates is on no node yet",
    "Kubernetes takes the template, and then refuses each of its pods.",
    "nodeName: node-1, schedulingGates: [{name: example.com/wait}]",
    reason="FieldValueForbidden",
    stricter=True,
    compares=True,
)

RULES = (TPL_GATE, TPL_GATE_NODE)


def readiness_gates(site: Site, spec: Raw) -> None:
    """Check `readinessGates`."""
    for index, gate in entries(spec["readinessGates"]):
        if problem := key_problem(gate.get("conditionType", "")):
            site.report(TPL_GATE, problem, f"readinessGates[{index}].conditionType")


def scheduling_gates(site: Site, spec: Raw) -> None:
    """Check `schedulingGates`."""
    seen: dict[str, int] = {}
    for index, gate in entries(spec["schedulingGates"]):
        name = gate.get("name", "")
        if problem := key_problem(name):
            site.report(TPL_GATE, problem, f"schedulingGates[{index}].name")
        elif (first := seen.setdefault(name, index)) != index:
            message = f"{quoted(name)} is already the name of schedulingGates[{first}]"
            site.report(TPL_GATE, message, f"schedulingGates[{index}].name")
    if spec["schedulingGates"] and spec.get("nodeName"):
        site.report(TPL_GATE_NODE, "must not be set where there are schedulingGates", "nodeName")
