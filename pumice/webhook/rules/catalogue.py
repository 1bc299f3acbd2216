"""All rules of admission, and their sections: the lists from which docs and settings are generated."""

from collections.abc import Iterable
from dataclasses import dataclass

from pumice.webhook.rules import hyper_nodes, not_here_yet, pod_groups, pods, wired_pods
from pumice.webhook.rules.flows import cron_jobs, job_flows, job_templates
from pumice.webhook.rules.jobs import checks as job_checks
from pumice.webhook.rules.queues import (
    amounts,
    capability,
    closing,
    fields,
    hierarchy_annotations,
    node_groups,
    sums,
    tree,
)
from pumice.webhook.rules.rule import Rule, rules_in

_OF_QUEUES = rules_in(
    amounts, fields, node_groups, closing, hierarchy_annotations, tree, capability, sums
)
_OF_PODS = rules_in(pod_groups, wired_pods, pods)
_OF_OTHERS = rules_in(job_templates, cron_jobs, job_flows, hyper_nodes, not_here_yet)

ALL: tuple[Rule, ...] = (*job_checks.RULES, *_OF_QUEUES, *_OF_PODS, *_OF_OTHERS)
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
