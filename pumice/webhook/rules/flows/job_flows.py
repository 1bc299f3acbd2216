"""JobFlows: Jobs that depend on each other, without a cycle."""

from pumice.api import keys
from pumice.api.jobflows import JOBS, JobFlow, failure_options, job_name
from pumice.api.jobs import Job
from pumice.api.json_words import quoted
from pumice.api.names import LABEL_LENGTH, dns_subdomain_problem, qualified_name_problem
from pumice.webhook.rules.case import Case, Check, run
from pumice.webhook.rules.flows.job_templates import TemplatePlace, judge_job
from pumice.webhook.rules.jobs.depends_on import cycle
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.rule import Rule, stricter, warned
from pumice.webhook.rules.updates import judge, leaves_spec

POD_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
ENDED = ("Succeed", "Failed")

FLOW_UNDEFINED = Rule(
    "FLOW-UNDEFINED",
    "flows depend on flows of the same JobFlow",
    "A Job that depends on a Job that is never created is never created itself.",
    "flows: [{name: train, dependsOn: {targets: [prepare]}}]",
    reason="FieldValueNotFound",
    compares=True,
)
FLOW_CYCLE = Rule(
    "FLOW-CYCLE",
    "flows do not depend on themselves, nor on each other in a cycle",
    "None of the Jobs would ever be created.",
    "flows: [{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}]",
    compares=True,
)
FLOW_DUPLICATE = warned(
    "FLOW-DUPLICATE",
    "no two flows have the same name",
    "Their Jobs would have the same name, so that only one is made; what the last one waits for counts.",
    "flows: [{name: train}, {name: train}]",
    reason="FieldValueDuplicate",
)
FLOW_NAME = stricter(
    "FLOW-NAME",
    "a flow has the name of a JobTemplate",
    "The Job is created from the JobTemplate of that name.",
    "flows: [{name: Train_It}]",
)
FLOW_JOB_NAME = stricter(
    "FLOW-JOB-NAME",
    "the names of the JobFlow and of a flow together have at most 63 characters",
    "The Job is named `<job flow>-<flow>`, for a retry `<job flow>-<flow>-retry-<number>`, and a Job's name must fit into a label.",
    "metadata: {name: a-rather-long-name-…}, flows: [{name: one-more-long-name-…}]",
    reason="FieldValueTooLong",
    compares=True,
)
FLOW_EMPTY = warned(
    "FLOW-EMPTY",
    "a JobFlow has flows",
    "Without flows it creates no Job.",
    "spec: {flows: []}",
    reason="FieldValueRequired",
)
FLOW_LABEL = stricter(
    "FLOW-LABEL",
    "the namespace and the name of the JobFlow, or of a flow, together have at most 62 characters",
    "A Job's labels say what it was made from and for, as `<namespace>.<name>`, and a label has at most 63 characters.",
    "metadata: {namespace: a-rather-long-namespace-…, name: a-rather-long-name-…}",
    reason="FieldValueTooLong",
    compares=True,
)
FLOW_PROBE = stricter(
    "FLOW-PROBE",
    "a probe looks at the phases of pods only",
    "The controller does not connect to pods: network policies may forbid it, and one answer does not guarantee the next. "
    "Let a readiness probe of the pod and `taskStatusList` say when the next Job may start, or a target that completes.",
    "flows: [{name: a}, {name: b, dependsOn: {targets: [a], probe: {httpGetList: [{path: /ready, port: 80}]}}}]",
    reason="FieldValueNotSupported",
)
FLOW_PROBE_PHASE = stricter(
    "FLOW-PROBE-PHASE",
    "a probe waits for a phase that pods have",
    "The probe would never succeed.",
    "flows: [{name: a}, {name: b, dependsOn: {targets: [a], probe: {taskStatusList: [{phase: Ready}]}}}]",
    reason="FieldValueNotSupported",
)
FLOW_ANNOTATION = stricter(
    "FLOW-ANNOTATION",
    "annotations that say what follows when a Job fails can be read",
    "Any other value has no effect; probably something was meant.",
    "metadata: {annotations: {pumice.dev/flow-retries: many}}",
)
FLOW_RETRY_NAME = stricter(
    "FLOW-RETRY-NAME",
    "no flow is named like a retry of another one",
    "Their Jobs would have the same name, so the flow that failed would get no further Job.",
    "metadata: {annotations: {pumice.dev/flow-retries: '1'}}, spec: {flows: [{name: a}, {name: a-retry-1}]}",
    reason="FieldValueDuplicate",
    compares=True,
)
FLOW_MANY = stricter(
    "FLOW-MANY",
    f"a JobFlow has at most {JOBS:,} Jobs, retries included",
    "Its status says something about each of them, and must fit into one object. Without admission no Job of such a JobFlow is created.",
    "more flows than 1,000, or 100 flows with ten retries each",
    reason="FieldValueTooMany",
    compares=True,
)
FLOW_UPDATE = stricter(
    "FLOW-UPDATE",
    "a flow that has started stays as it is, and so do all flows of a JobFlow that has ended",
    "The Job of the flow exists already, and a JobFlow that has ended makes no more Jobs: the change would have no effect.",
    "another patch of a flow than the one that its Job has",
    reason="FieldValueForbidden",
)


def _names(case: Case, job_flow: JobFlow) -> None:
    if not job_flow.flows:
        case.report(FLOW_EMPTY, "spec.flows", "is empty, so no Job is created")
    whole, retries = expected_name(job_flow.metadata), failure_options(job_flow.metadata).retries
    seen: dict[str, int] = {}
    for index, flow in enumerate(job_flow.flows):
        longest = job_name(whole, flow.name, retries)
        path = f"spec.flows[{index}].name"
        first = seen.setdefault(flow.name, index)
        if problem := dns_subdomain_problem(flow.name):
            case.report(FLOW_NAME, path, problem)
        elif first != index:
            message = f'"{flow.name}" is already the name of spec.flows[{first}]'
            case.report(FLOW_DUPLICATE, path, message)
        elif whole and (problem := qualified_name_problem(longest)):
            message = f'its {"last " if retries else ""}Job would be named "{longest}": {problem}'
            case.report(FLOW_JOB_NAME, path, message)


def _labels(case: Case, job_flow: JobFlow) -> None:
    namespace = job_flow.metadata.namespace or case.namespace
    names = {"metadata.name": expected_name(job_flow.metadata)}
    names |= {f"spec.flows[{n}].name": flow.name for n, flow in enumerate(job_flow.flows)}
    for path, name in names.items():
        if namespace and name and len(f"{namespace}.{name}") > LABEL_LENGTH:
            message = (
                f'a label of its Jobs would be "{namespace}.{name}", which must be at most {LABEL_LENGTH}'
                f" characters, found {len(f'{namespace}.{name}')}"
            )
            case.report(FLOW_LABEL, path, message)


def _probes(case: Case, job_flow: JobFlow) -> None:
    for index, flow in enumerate(job_flow.flows):
        probe = flow.depends_on.probe if flow.depends_on is not None else None
        if probe is None:
            continue
        path = f"spec.flows[{index}].dependsOn.probe"
        for field, protocol, asked in (
            ("httpGetList", "HTTP", probe.http_get_list),
            ("tcpSocketList", "TCP", probe.tcp_socket_list),
        ):
            if asked:
                message = f"probes over {protocol} are not supported; use taskStatusList, or let the target complete"
                case.report(FLOW_PROBE, f"{path}.{field}", message)
        for number, status in enumerate(probe.task_status_list or ()):
            if status.phase not in POD_PHASES:
                message = (
                    f'must be one of {", ".join(POD_PHASES)}, found "{status.phase}"'
                    f"{case.did_you_mean(status.phase, POD_PHASES)}"
                )
                case.report(FLOW_PROBE_PHASE, f"{path}.taskStatusList[{number}].phase", message)


def _order(case: Case, job_flow: JobFlow) -> None:
    """Check the dependencies in linear time; of flows with the same name the last one counts."""
    last = {flow.name: index for index, flow in enumerate(job_flow.flows)}
    edges: dict[str, list[str]] = {name: [] for name in last}
    for name, index in last.items():
        depends_on = job_flow.flows[index].depends_on
        for number, target in enumerate((depends_on and depends_on.targets) or ()):
            path = f"spec.flows[{index}].dependsOn.targets[{number}]"
            if target == name:
                message = f'jobflow Flow is not DAG: flow "{target}" depends on itself'
                case.report(FLOW_CYCLE, path, message)
            elif target not in last:
                hint = case.did_you_mean(target, last)
                message = f'jobflow Flow is not DAG: vertex is not defined: there is no flow "{target}"{hint}'
                case.report(FLOW_UNDEFINED, path, message)
            else:
                edges[name].append(target)
    for circle in cycle(edges):
        path = f"spec.flows[{last[circle[0]]}].dependsOn.targets"
        shown = " → ".join([*circle, circle[0]])
        message = f"jobflow Flow is not DAG: flows depend on each other in a cycle, {shown}"
        case.report(FLOW_CYCLE, path, message)


def _failures(case: Case, job_flow: JobFlow) -> None:
    """Check what the annotations say about Jobs that fail, and how many Jobs there may be then."""
    options = failure_options(job_flow.metadata)
    for key, problem in options.invalid:
        message = f"{problem}, found {quoted(job_flow.metadata.annotation(key))}"
        case.report(FLOW_ANNOTATION, f"metadata.annotations[{key}]", message)
    names = {flow.name: index for index, flow in enumerate(job_flow.flows)}
    jobs = len(names) * (1 + options.retries)
    if jobs > JOBS:
        path, message = "spec.flows", f"must be at most {JOBS}, found {len(names)}"
        if len(names) <= JOBS:
            path = f"metadata.annotations[{keys.FLOW_RETRIES}]"
            message = (
                f"must be at most {JOBS // len(names) - 1} with {len(names)} flows, found"
                f" {options.retries}: a JobFlow has at most {JOBS} Jobs"
            )
        case.report(FLOW_MANY, path, f"{message}; divide it into several JobFlows", excess=jobs)
    for name in names if options.retries else ():
        for number in range(1, options.retries + 1):
            again = f"{name}-retry-{number}"
            if again in names:
                message = (
                    f'its Job would have the name of retry {number} of flow "{name}"; rename it'
                )
                case.report(FLOW_RETRY_NAME, f"spec.flows[{names[again]}].name", message)


def _patches(case: Case, job_flow: JobFlow) -> None:
    for index, flow in enumerate(job_flow.flows):
        if flow.patch is not None and flow.patch.job_spec is not None:
            place = TemplatePlace(f"spec.flows[{index}].patch.jobSpec")
            judge_job(case, Job(spec=flow.patch.job_spec), place, partial=True)


CHECKS: tuple[Check[JobFlow], ...] = (
    (FLOW_NAME, _names),
    (FLOW_UNDEFINED, _order),
    (FLOW_JOB_NAME, _patches),
    (FLOW_LABEL, _labels),
    (FLOW_MANY, _failures),
    (FLOW_PROBE, _probes),
)


def validate(case: Case, job_flow: JobFlow, old: JobFlow | None) -> None:
    """Check a JobFlow, and in an update the changes of flows that have Jobs."""
    if old is not None and not leaves_spec(job_flow, old):
        _started(case, job_flow, old)
    judge(case, CHECKS, job_flow, old)
    if old is None or job_flow.metadata.deletion_timestamp or job_flow.spec != old.spec:
        return
    if failure_options(job_flow.metadata) != failure_options(old.metadata):
        run(case, ((FLOW_MANY, _failures),), job_flow)


def _started(case: Case, job_flow: JobFlow, old: JobFlow) -> None:
    """Check that flows stay as they are once they have started; of flows of one name the last counts."""
    phase = old.status.state.phase
    before = {flow.name: flow for flow in old.flows}
    after = {flow.name: (number, flow) for number, flow in enumerate(job_flow.flows)}
    lists = (
        old.status.pending_jobs,
        old.status.running_jobs,
        old.status.failed_jobs,
        old.status.completed_jobs,
        old.status.terminated_jobs,
        old.status.un_know_jobs,
    )
    names = {each for jobs in lists for each in jobs or ()}
    for name, flow in before.items():
        if phase not in ENDED and job_name(old.metadata.name, name) not in names:
            continue
        why = f"the JobFlow is {phase}" if phase in ENDED else "its Job exists already"
        number, changed = after.get(name, (-1, None))
        if changed is None:
            case.report(FLOW_UPDATE, "spec.flows", f'flow "{name}" must not be removed: {why}')
        elif changed != flow:
            message = f"must not be changed: {why}; create another JobFlow"
            case.report(FLOW_UPDATE, f"spec.flows[{number}]", message)
    for name, (number, _) in after.items():
        if phase in ENDED and name not in before:
            message = f"must not be added: the JobFlow is {phase}; create another JobFlow"
            case.report(FLOW_UPDATE, f"spec.flows[{number}]", message)
