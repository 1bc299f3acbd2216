"""All rules of admission, and their sections: the lists from which docs and settings are generated.

Codes of the schemas of kinds, and of the API server itself, are described too. They are not rules and have no settings.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pumice.webhook.rules import hyper_nodes, not_here_yet, pod_groups, pods, wired_pods
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.queues import checks as queue_checks
from pumice.webhook.rules.rule import Rule, rules_in

_OF_PODS = rules_in(pod_groups, wired_pods, pods)
_OF_OTHERS = rules_in(job_templates, cron_jobs, job_flows, hyper_nodes, not_here_yet)

ALL: tuple[Rule, ...] = (*job_checks.RULES, *queue_checks.RULES, *_OF_PODS, *_OF_OTHERS)
"""Every rule by kind, in the order in which problems are reported."""

_BY_CODE = {rule.code: rule for rule in ALL}


def by_code(code: str) -> Rule | None:
    """Find a rule; None for codes of the CRD schema, which are not rules."""
    return _BY_CODE.get(code)


@dataclass(frozen=True, slots=True)
class Section:
    """Rules that belong together on pages and in lists, by the prefixes of their codes.

    Attributes:
        title: Their topic.
        prefixes: First parts of their codes, separated by blanks.
        namespaced: Whether their objects are namespaced.
    """

    title: str
    prefixes: str
    namespaced: bool = True


SECTIONS = (
    Section("Jobs", "JOB"),
    Section("Queues of Jobs", "JOB-QUEUE"),
    Section("Plugins of Jobs", "JOB-PLUGIN JOB-MPI JOB-RAY"),
    Section("Lifecycle policies", "POL"),
    Section("Partitions", "PART"),
    Section("Volumes of Jobs", "VOL"),
    Section("Pod templates", "TPL TPL-RESTART-POLICY"),
    Section(
        "Containers",
        "TPL-CONTAINER TPL-CONTAINERS TPL-ENV TPL-EPHEMERAL TPL-HANDLER TPL-HOST-PORT TPL-IMAGE "
        "TPL-INIT TPL-PORT TPL-PROBE TPL-PULL-POLICY TPL-RESTART TPL-TERMINATION",
    ),
    Section(
        "Resources of pods",
        "TPL-CLAIM TPL-CPU TPL-HUGEPAGES TPL-LIMIT TPL-MEMORY TPL-OVERHEAD TPL-POD-CLAIM TPL-POD-RESOURCES "
        "TPL-QUANTITY TPL-RESIZE TPL-RESOURCE",
    ),
    Section(
        "Volumes of pods",
        "TPL-CERTIFICATES TPL-CLAIM-TEMPLATE TPL-DEVICE TPL-MOUNT TPL-PROJECTION TPL-VOLUME",
    ),
    Section(
        "Placement of pods",
        "TPL-AFFINITY TPL-GATE TPL-LABEL-KEYS TPL-NODE-SELECTOR TPL-PREEMPTION TPL-PRIORITY "
        "TPL-SELECTOR TPL-SPREAD TPL-TOLERATION",
    ),
    Section(
        "Security of pods",
        "TPL-HOST-PROCESS TPL-HOST-USERS TPL-POD-SECURITY TPL-PROFILE TPL-SECURITY TPL-SYSCTL "
        "TPL-WINDOWS",
    ),
    Section("CronJobs", "CRON"),
    Section("JobFlows", "FLOW"),
    Section("JobTemplates", "JT"),
    Section("Queues", "Q", namespaced=False),
    Section(
        "The tree of queues",
        "Q-CAP-BELOW Q-CAP-DESC Q-CAP-GT Q-CAP-LT Q-CHILD Q-CYCLE Q-DEPTH Q-PARENT Q-ROOT "
        "Q-SELF Q-SIB Q-TREE",
        namespaced=False,
    ),
    Section("Hierarchies of queues", "Q-HIER", namespaced=False),
    Section("Node groups and clusters of queues", "Q-GROUP Q-CLUSTER", namespaced=False),
    Section("Deletion of queues", "Q-DEL", namespaced=False),
    Section("HyperNodes", "HN", namespaced=False),
    Section("PodGroups", "PG"),
    Section("Pods", "POD"),
    Section("What is not here yet", "NOT"),
)
"""All sections; if a kind has several, the general ones are first."""

_BY_PREFIX = {prefix: section for section in SECTIONS for prefix in section.prefixes.split()}


def section_of(code: str) -> Section:
    """The section of a code: the one with the longest prefix; one of its own for a new prefix."""
    prefix = code
    while prefix not in _BY_PREFIX:
        if "-" not in prefix:
            return Section(prefix, prefix)
        prefix = prefix.rpartition("-")[0]
    return _BY_PREFIX[prefix]


def sections(rules: Iterable[Rule]) -> list[tuple[Section, list[Rule]]]:
    """Rules by section, without empty ones; within one they keep their order."""
    found: dict[Section, list[Rule]] = {}
    for rule in rules:
        found.setdefault(section_of(rule.code), []).append(rule)
    known = [(section, found.pop(section)) for section in SECTIONS if section in found]
    return [*known, *found.items()]


SCHEMA_CODES = (
    Rule(
        "SCHEMA-KIND",
        "there is a kind of that name in that version of the group",
        "The API server has nothing to compare the object with, and kubectl finds no place for it.",
        "apiVersion: batch.volcano.sh/v1alpha1, kind: job",
    ),
    Rule(
        "SCHEMA-TYPE",
        "a field has the type that its kind gives it",
        "The API server cannot decode a string in place of an integer, or a list in place of an object.",
        'maxRetry: "3"',
    ),
    Rule(
        "SCHEMA-REQUIRED",
        "a field that must be there is there",
        "The API server refuses an object without it.",
        "kind: HyperNode, spec: {members: […]} without tier",
    ),
    Rule(
        "SCHEMA-ENUM",
        "a field has one of the values that there are",
        "The API server refuses all others, in upper and lower case as they are written.",
        "jobRetainPolicy: keep",
    ),
    Rule(
        "SCHEMA-BOUNDS",
        "a number is neither too small nor too large",
        "The API server refuses what is out of the field's bounds.",
        "replicas: -1",
    ),
    Rule(
        "SCHEMA-LENGTH",
        "a string is neither too short nor too long",
        "The API server refuses what is out of the field's bounds.",
        'flows: [{name: ""}]',
    ),
    Rule(
        "SCHEMA-PATTERN",
        "a string matches the pattern of its field",
        "The API server refuses a string that does not match.",
        "priorityClassName: Not A Name",
    ),
    Rule(
        "SCHEMA-ITEMS",
        "a list or a map has neither too few nor too many entries",
        "The API server refuses what is out of the field's bounds.",
        "kind: HyperNode, spec: {tier: 1, members: []}",
    ),
    Rule(
        "SCHEMA-DUPLICATE",
        "no entry of a list is there twice",
        "The API server takes some lists for sets.",
        "the same item twice",
    ),
    Rule(
        "SCHEMA-COMBINATION",
        "fields that belong together, or exclude each other, do so",
        "The API server refuses other combinations.",
        "selector: {exactMatch: {…}, regexMatch: {…}}",
    ),
    Rule(
        "SCHEMA-NAME",
        "an object has a name, and a namespace, that it can have",
        "The API server stores every object under its name, in its namespace.",
        "metadata: {name: My_Job}",
    ),
    Rule(
        "SCHEMA-LABELS",
        "an object has labels and annotations that it can have",
        "The API server refuses others: keys and the values of labels are short and plain.",
        "metadata: {labels: {team: vision lab}}",
    ),
    Rule(
        "SCHEMA-UNKNOWN",
        "a field exists",
        "The API server drops a field that the kind does not have; kubectl refuses it unless told not to look.",
        "spec: {minAvalable: 3}",
        level="warn",
    ),
    Rule(
        "SCHEMA-NULL",
        "an entry of a map has a value",
        "The API server removes an entry that is null, as if it were not there.",
        "plugins: {pytorch: }",
        level="warn",
    ),
    Rule(
        "SCHEMA-TWICE",
        "an object is in the files once",
        "If both are applied, the last one replaces the first. Only `pumice lint` reports this: an API server gets one object at a time.",
        "two Jobs with metadata: {name: train, namespace: default}",
        level="warn",
    ),
)
"""Errors of the schemas of kinds, and of the API server itself."""
