"""JobFlows: Jobs that wait for each other, and not in a circle."""

from pumice.api.jobflows import Flow, JobFlow, job_name
from pumice.api.names import dns_subdomain_problem, qualified_name_problem
from pumice.webhook.rules.case import Case, Check
from pumice.webhook.rules.flows.job_templates import Place, judge_partial_job
from pumice.webhook.rules.jobs.depends_on import cycle
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.updates import judge, leaves_spec

__all__ = ["CHECKS", "validate"]

FLOW_UNDEFINED = Rule(
    "FLOW-UNDEFINED",
    "flows wait for flows that there are",
    "A Job that waits for one that is never made is never made itself.",
    "flows: [{name: train, dependsOn: {targets: [prepare]}}]",
    reason="FieldValueNotFound",
    compares=True,
)
FLOW_CYCLE = Rule(
    "FLOW-CYCLE",
    "flows do not wait for themselves, nor for each other in a circle",
    "None of the Jobs would ever be made.",
    "flows: [{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}]",
    compares=True,
)
FLOW_DUPLICATE = Rule(
    "FLOW-DUPLICATE",
    "no two flows have the same name",
    "Their Jobs would have the same name, so that only one is made; what the last one waits for counts.",
    "flows: [{name: train}, {name: train}]",
    reason="FieldValueDuplicate",
    level="warn",
)
FLOW_NAME = Rule(
    "FLOW-NAME",
    "a flow is called as a JobTemplate can be",
    "The Job is made of the JobTemplate of that name.",
    "flows: [{name: Train_It}]",
    stricter=True,
)
FLOW_JOB_NAME = Rule(
    "FLOW-JOB-NAME",
    "the names of the JobFlow and of a flow together have at most 63 characters",
    "The Job is named `<job flow>-<flow>`, and a Job's name must fit into a label.",
    "metadata: {name: a-rather-long-name-…}, flows: [{name: one-more-long-name-…}]",
    reason="FieldValueTooLong",
    stricter=True,
    compares=True,
)
FLOW_EMPTY = Rule(
    "FLOW-EMPTY",
    "a JobFlow has flows",
    "It makes no Job otherwise.",
    "spec: {flows: []}",
    reason="FieldValueRequired",
    level="warn",
)
FLOW_UPDATE = Rule(
    "FLOW-UPDATE",
    "the spec of a JobFlow stays as it is",
    "A JobFlow that runs does not look at its spec again; make a new one instead.",
    "one more item in flows than the stored JobFlow has",
    reason="FieldValueForbidden",
    level="warn",
)


def _names(case: Case, job_flow: JobFlow) -> None:
    if not job_flow.flows:
        case.report(FLOW_EMPTY, "spec.flows", "is empty, so that no Job is made")
    whole = expected_name(job_flow.metadata)
    seen: dict[str, int] = {}
    for index, flow in enumerate(job_flow.flows):
        path = f"spec.flows[{index}].name"
        first = seen.setdefault(flow.name, index)
        if problem := dns_subdomain_problem(flow.name):
            case.report(FLOW_NAME, path, problem)
        elif first != index:
            message = f'"{flow.name}" is already the name of spec.flows[{first}]'
            case.report(FLOW_DUPLICATE, path, message)
        elif whole and (problem := qualified_name_problem(job_name(whole, flow.name))):
            message = f'its Job would be named "{job_name(whole, flow.name)}", which {problem}'
            case.report(FLOW_JOB_NAME, path, message)


def _order(case: Case, job_flow: JobFlow) -> None:
    """Check what waits for what, in linear time; of flows of one name the last counts."""
    last = {flow.name: index for index, flow in enumerate(job_flow.flows)}
    edges: dict[str, list[str]] = {name: [] for name in last}
    for name, index in last.items():
        edges[name] = _targets(case, job_flow.flows[index], index, last)
    for circle in cycle(edges):
        path = f"spec.flows[{last[circle[0]]}].dependsOn.targets"
        shown = " → ".join([*circle, circle[0]])
        case.report(FLOW_CYCLE, path, f"flows wait for each other in a circle: {shown}")


def _targets(case: Case, flow: Flow, index: int, names: dict[str, int]) -> list[str]:
    """Flows that a flow waits for, leaving out those that are problems of their own."""
    found = []
    named = (flow.depends_on.targets if flow.depends_on is not None else None) or ()
    for number, target in enumerate(named):
        path = f"spec.flows[{index}].dependsOn.targets[{number}]"
        if target == flow.name:
            case.report(FLOW_CYCLE, path, f'flow "{target}" waits for itself')
        elif target not in names:
            hint = case.did_you_mean(target, names)
            case.report(FLOW_UNDEFINED, path, f'there is no flow "{target}"{hint}')
        else:
            found.append(target)
    return found


def _patches(case: Case, job_flow: JobFlow) -> None:
    for index, flow in enumerate(job_flow.flows):
        if flow.patch is not None and flow.patch.job_spec is not None:
            place = Place(f"spec.flows[{index}].patch.jobSpec")
            judge_partial_job(case, flow.patch.job_spec, place)


CHECKS: tuple[Check[JobFlow], ...] = (
    (FLOW_NAME, _names),
    (FLOW_UNDEFINED, _order),
    (FLOW_JOB_NAME, _patches),
)
"""What is judged about a JobFlow, in the order in which problems are told."""


def validate(case: Case, job_flow: JobFlow, old: JobFlow | None) -> None:
    """Judge a JobFlow, and say that a change has no effect."""
    if old is not None and not leaves_spec(job_flow, old):
        message = (
            "has no effect on a JobFlow that runs; delete it and make it anew to have other Jobs"
        )
        case.report(FLOW_UPDATE, "spec", f"a change {message}")
    judge(case, CHECKS, job_flow, old)
