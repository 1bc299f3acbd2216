"""Job plugins of a Job: names, arguments, what they need, and the annotations that they write.

The plugins check their arguments themselves; here are the codes of these checks, for the rule pages. The
annotations are for the scheduler.
"""

import msgspec

from pumice import plugins
from pumice.api.jobs import Job
from pumice.plugins import PluginError
from pumice.webhook.patches import escape
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftJob
from pumice.webhook.rules.jobs.names import expected_name
from pumice.webhook.rules.jobs.updates import normal
from pumice.webhook.rules.rule import Rule, stricter, warned

JOB_PLUGIN = Rule(
    "JOB-PLUGIN",
    "plugins exist",
    "Without the plugin the pods lack its variables and Services, and the Job fails.",
    "plugins: {tensorflw: []}",
    reason="FieldValueNotSupported",
)
JOB_MPI_MASTER = Rule(
    "JOB-MPI-MASTER",
    "a Job with plugin mpi has the master task",
    "Without it no pod starts the computation.",
    "plugins: {mpi: [--master=launcher]}, tasks: [{name: worker}]",
    reason="FieldValueNotFound",
    compares=True,
)
JOB_RAY_HEAD = stricter(
    "JOB-RAY-HEAD",
    "a Job with plugin ray has the head task",
    "The workers would have no head to join; Volcano creates no pod of such a Job, and ends it.",
    "plugins: {ray: [--head=leader]}, tasks: [{name: worker}]",
    reason="FieldValueNotFound",
    compares=True,
)
JOB_MXNET_SCHEDULER = Rule(
    "JOB-MXNET-SCHEDULER",
    "a Job with plugin mxnet has the scheduler task",
    "Every other process connects to the scheduler first.",
    "plugins: {mxnet: []}, tasks: [{name: server}, {name: worker}]",
    reason="FieldValueNotFound",
    compares=True,
)
JOB_PLUGIN_NAME = stricter(
    "JOB-PLUGIN-NAME",
    "names that plugins make of the Job's name are valid",
    "Plugin svc names a Service after the Job; a Service's name is stricter than a Job's.",
    "metadata: {name: 3d-render}, plugins: {svc: []}",
    compares=True,
)
JOB_PLUGIN_ARGUMENT = warned(
    "JOB-PLUGIN-ARGUMENT",
    "arguments of a plugin are valid",
    "An invalid argument keeps its default.",
    "plugins: {tensorflow: [--prot=2223]}",
)
JOB_PLUGIN_ROLE = warned(
    "JOB-PLUGIN-ROLE",
    "a Job has the tasks that its plugins look for",
    "Pods of tasks that a plugin does not know are not part of the computation.",
    "plugins: {tensorflow: [--worker=wrkr]}, tasks: [{name: worker}]",
    reason="FieldValueNotFound",
    compares=True,
)
JOB_PLUGIN_HOSTNAME = stricter(
    "JOB-PLUGIN-HOSTNAME",
    "pods that plugins address one by one have host names of their own",
    "A host name of several pods resolves to any of them. If only svc uses the names, this is a warning.",
    "plugins: {mpi: []}, replicas: 2, template: {spec: {hostname: worker}}",
    compares=True,
)
JOB_PLUGIN_SUBDOMAIN = warned(
    "JOB-PLUGIN-SUBDOMAIN",
    "pods that plugins address are in the Job's subdomain",
    "Only the Job's Service resolves their names.",
    "template: {spec: {subdomain: mine}}",
    compares=True,
)
JOB_PLUGIN_SIZE = warned(
    "JOB-PLUGIN-SIZE",
    "variables that plugins write into a pod are not too large",
    "Linux refuses an environment variable of more than 128 KiB. A Job is refused if a pod, a ConfigMap or a Secret cannot hold what plugins write.",
    "a task of 5,000 replicas with plugin svc",
    compares=True,
)
JOB_PLUGIN_OVERWRITTEN = warned(
    "JOB-PLUGIN-OVERWRITTEN",
    "a template has no field that a plugin replaces",
    "Plugin ray sets the command of its containers, so the command in the template has no effect.",
    "plugins: {ray: []}, containers: [{name: head, command: [python, train.py]}]",
)
JOB_PLUGIN_PORTS = stricter(
    "JOB-PLUGIN-PORTS",
    "ports of plugin ray differ from each other",
    "The API server refuses a Service with a port twice, so the Job would wait forever.",
    "plugins: {ray: [--port=10001]}",
    reason="FieldValueDuplicate",
)
JOB_PLUGIN_VARIABLE = Rule(
    "JOB-PLUGIN-VARIABLE",
    "variables of plugin roles refer to existing fields and roles",
    "A field or role that does not exist has no value.",
    'plugins: {roles: ["--roles=server", "--env=URL={adress:server}"]}',
)
JOB_PLUGIN_SECRET = warned(
    "JOB-PLUGIN-SECRET",
    "SSH keys come from a Secret, as a complete pair, and are readable by their user only",
    "Every user who may read Jobs can read their arguments; one half of a pair has no effect; and OpenSSH refuses a private key "
    "of root's that an fsGroup may read.",
    'plugins: {ssh: ["--ssh-private-key=-----BEGIN …"]}',
)
JOB_PLUGIN_KEPT = warned(
    "JOB-PLUGIN-KEPT",
    "a Job does not have another value for an annotation that a plugin writes",
    "The value in the Job is kept, so the plugin's argument has no effect.",
    "an annotation volcano.sh/task-topology-affinity beside --affinity of plugin task-topology",
    compares=True,
)
_ADMITTED = (JOB_RAY_HEAD, JOB_PLUGIN_NAME, JOB_PLUGIN_HOSTNAME, JOB_PLUGIN_PORTS, JOB_PLUGIN_SIZE)
_STRICTER = frozenset(rule.code for rule in _ADMITTED)
"""Errors of plugins that Volcano admits."""


def job_plugins(case: Case, job: Job) -> None:
    """Let the Job's plugins check it, with its future name."""
    if not job.spec.plugins:
        return
    if not job.metadata.name and job.metadata.generate_name:
        meta = msgspec.structs.replace(job.metadata, name=expected_name(job.metadata))
        job = msgspec.structs.replace(job, metadata=meta)
    strict = case.settings.strict_upstream
    errors, warnings = plugins.problems(job, case.plugins, strict_upstream=strict)
    for found in (*errors, *warnings):
        if found.code == JOB_PLUGIN_SIZE.code:
            # The excess is measured in pods, although the message has bytes.
            case.excesses[found.code, found.path] = job.replicas
    for error in errors:
        # Values far above the limits are refused; Volcano has no limits.
        case.add(error, "enforce", stricter=error.code in _STRICTER)
    refused = {(each.code, each.path) for each in errors}
    for warning in warnings:
        if (warning.code, warning.path) not in refused:
            case.add(warning, "warn")


_ANNOTATIONS = "/metadata/annotations"


def job_annotations(case: Case, job: Job, draft: DraftJob, old: DraftJob | None = None) -> None:
    """Write annotations into the case's patch: those that the Job lacks.

    The draft is the same Job with the fields that defaulting reads. In an update only annotations of the stored Job are
    added.
    """
    if any(not task.name for task in job.tasks):
        job = normal(case.sibling(), job)
    strict = case.settings.strict_upstream
    try:
        wanted = plugins.job_annotations(job, case.plugins, strict_upstream=strict)
    except PluginError as error:
        case.report(JOB_PLUGIN, "spec.plugins", str(error))
        return
    if old is not None:
        stored = (old.metadata.annotations if old.metadata is not None else None) or {}
        wanted = {key: value for key, value in wanted.items() if key in stored}
    if draft.metadata is None:
        case.patch.missing("/metadata")
    if draft.metadata is None or draft.metadata.annotations is None:
        case.patch.missing(_ANNOTATIONS)
    for key, value in wanted.items():
        case.patch.set(f"{_ANNOTATIONS}/{escape(key)}", value)
