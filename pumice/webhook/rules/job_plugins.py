"""Job plugins: named right, given arguments that they understand, and with what they need.

The plugins judge by themselves; here are the codes under which they do, for the rule pages.
"""

from pumice import plugins
from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_PLUGIN", "RULES", "job_plugins"]

JOB_PLUGIN = Rule(
    "JOB-PLUGIN",
    "plugins exist",
    "A plugin that does not exist wires nothing, and the Job fails in a way that is hard to trace.",
    "plugins: {tensorflw: []}",
    reason="FieldValueNotSupported",
)
JOB_MPI_MASTER = Rule(
    "JOB-MPI-MASTER",
    "a Job with plugin mpi has the master task",
    "Nobody would start the computation.",
    "plugins: {mpi: [--master=launcher]}, tasks: [{name: worker}]",
    reason="FieldValueNotFound",
    compares=True,
)
JOB_PLUGIN_NAME = Rule(
    "JOB-PLUGIN-NAME",
    "names that plugins make of the Job's name are valid",
    "Plugin svc names a Service after the Job; a Service's name is stricter than a Job's.",
    "metadata: {name: 3d-render}, plugins: {svc: []}",
    stricter=True,
    compares=True,
)
JOB_PLUGIN_ARGUMENT = Rule(
    "JOB-PLUGIN-ARGUMENT",
    "arguments of a plugin can be read",
    "An argument that cannot be read keeps its default.",
    "plugins: {tensorflow: [--prot=2223]}",
    level="warn",
)
JOB_PLUGIN_UNAVAILABLE = Rule(
    "JOB-PLUGIN-UNAVAILABLE",
    "plugins are part of this version",
    "Volcano has the plugin and this version does not, so the pods are not wired for it.",
    "plugins: {ssh: []}",
    level="warn",
)
JOB_PLUGIN_ROLE = Rule(
    "JOB-PLUGIN-ROLE",
    "a Job has the tasks that its plugins look for",
    "Pods of tasks that a plugin does not know are not part of the computation.",
    "plugins: {tensorflow: [--worker=wrkr]}, tasks: [{name: worker}]",
    reason="FieldValueNotFound",
    level="warn",
    compares=True,
)
JOB_PLUGIN_HOSTNAME = Rule(
    "JOB-PLUGIN-HOSTNAME",
    "pods that plugins address have host names of their own",
    "Several pods with one host name cannot be told apart.",
    "replicas: 2, template: {spec: {hostname: worker}}",
    level="warn",
    compares=True,
)
JOB_PLUGIN_SUBDOMAIN = Rule(
    "JOB-PLUGIN-SUBDOMAIN",
    "pods that plugins address are in the Job's subdomain",
    "There is no Service of another name that would resolve them.",
    "template: {spec: {subdomain: mine}}",
    level="warn",
    compares=True,
)
JOB_PLUGIN_SIZE = Rule(
    "JOB-PLUGIN-SIZE",
    "what plugins write into a pod fits",
    "Linux refuses an environment variable of more than 128 KiB.",
    "a task of 5,000 replicas with plugin svc",
    level="warn",
    compares=True,
)
JOB_PLUGIN_KEPT = Rule(
    "JOB-PLUGIN-KEPT",
    "what a plugin would write is not there already with another value",
    "What the Job carries stays, so the plugin's argument has no effect.",
    "an annotation volcano.sh/task-topology-affinity beside --affinity of plugin task-topology",
    level="warn",
    compares=True,
)

RULES = (
    JOB_PLUGIN,
    JOB_MPI_MASTER,
    JOB_PLUGIN_NAME,
    JOB_PLUGIN_ARGUMENT,
    JOB_PLUGIN_UNAVAILABLE,
    JOB_PLUGIN_ROLE,
    JOB_PLUGIN_HOSTNAME,
    JOB_PLUGIN_SUBDOMAIN,
    JOB_PLUGIN_SIZE,
    JOB_PLUGIN_KEPT,
)


def job_plugins(case: Case, job: Job) -> None:
    """Let the Job's plugins judge it."""
    if not job.spec.plugins:
        return
    strict = case.settings.strict_upstream
    errors, warnings = plugins.problems(job, case.plugins, strict_upstream=strict)
    for error in errors:
        if strict and error.code == JOB_PLUGIN_NAME.code:
            case.warnings.append(error)
        else:
            case.errors.append(error)
    case.warnings.extend(warnings)
