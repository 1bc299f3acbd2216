"""Where a finding of `pumice migrate check` ranks, and what to do about it: tables.

What is not here yet ranks by its own table (`pumice.api.not_here_yet`). An object that a rule refuses would not run when it
is submitted again, unless a table here says otherwise; a rule that only warns is other words. How Pumice decides otherwise
with the same configuration is on the page on compatibility, with the reasons.
"""

import re
from typing import Literal, NamedTuple

from pumice.api.kinds import HYPER_NODE, QUEUE
from pumice.api.not_here_yet import HARMS, Harm

NOT_RUN, ELSEWHERE, WORDS = HARMS

SAME = frozenset(
    {
        *("JOB-QUEUE-MISSING", "JOB-QUEUE-UNKNOWN", "JOB-QUEUE-NOT-OPEN", "JOB-QUEUE-LATER"),
        *("JOB-QUEUE-NAMESPACE", "JOB-QUEUE-ROOT", "JOB-QUEUE-NOT-LEAF", "JOB-PRIORITY"),
        *("PG-QUEUE-MISSING", "PG-QUEUE-UNKNOWN", "PG-QUEUE-NOT-OPEN", "PG-QUEUE-NAMESPACE"),
        *("JOB-TIER", "PG-PRIORITY", "PG-TIER"),
        *("Q-PARENT-MISSING", "Q-PARENT-UNKNOWN", "Q-PARENT-CLOSED"),
        *("Q-CLOSE-CHILDREN", "Q-PARENT-BUSY", "Q-PARENT-GROUPS", "SCHEMA-NULL", "SCHEMA-TWICE"),
    }
)
"""Codes that depend on other objects of the cluster, whose answer in Volcano is the same, and codes about files."""

REFUSED_KINDS: dict[str, Harm] = {QUEUE.kind: WORDS, HYPER_NODE.kind: WORDS}
"""The harm where an object of such a kind would be refused; objects of other kinds would not run."""

STAYS = "it stays in the cluster as it is; correct it before it is changed or made again"
"""The remedy for kinds of which existing objects are not made again."""

WARNED: dict[str, Harm] = {
    "JOB-PLUGIN-ARGUMENT": ELSEWHERE,
    "JOB-PRIORITY-HIGHER": ELSEWHERE,
    "Q-CAP-ZERO": NOT_RUN,
    "Q-GROUP-PREFERENCE": ELSEWHERE,
    "SCHEMA-UNKNOWN": ELSEWHERE,
    "VOL-TAKEN": ELSEWHERE,
    "VOL-TWICE": ELSEWHERE,
}
"""What becomes of objects about which a rule warns, if it is not other words."""

REMEDIES = {
    "JOB-PLUGIN": "bring the plugin as a Python package (`pumice plugins check`), or remove it",
    "JOB-PLUGIN-ARGUMENT": "correct the argument; Volcano takes 0 or false for it, Pumice its default",
    "JOB-PRIORITY-HIGHER": "use one class for both, or give the controller --set strict-upstream=true",
    "Q-CAP-ZERO": "leave the resource out of the capability if it is not limited",
    "Q-GROUP-PREFERENCE": "remove the preference, or the requirement that contradicts it",
    "SCHEMA-UNKNOWN": "remove it: Pumice's CRDs do not have the field, so the API server drops it",
    "VOL-TAKEN": "mount one of the two elsewhere; Volcano makes pods that fail",
    "VOL-TWICE": "remove one of the two paths; Volcano mounts the first one only",
}
"""What to do, by code; for others the message says what would be right."""

EXPLAINED = "nothing has to change; `pumice rules {code}` explains the warning"
"""The remedy for warnings without one."""


class ConfigWarning(NamedTuple):
    """A form of warnings about the scheduler's configuration.

    Attributes:
        pattern: Matches the end of the warning.
        harm: What becomes of workload.
        remedy: What to do.
    """

    pattern: re.Pattern[str]
    harm: Harm
    remedy: str


CONFIG_WARNINGS = (
    ConfigWarning(
        re.compile(r"unknown argument, ignored.*$"),
        WORDS,
        "correct the name or remove it; Volcano ignores it and does not say so",
    ),
    ConfigWarning(re.compile(r"metrics: not part of this version, ignored$"), WORDS, "remove it"),
    ConfigWarning(
        re.compile(r"not part of this version, ignored$"),
        ELSEWHERE,
        "remove it; `pumice simulate` shows where pods go without it",
    ),
    ConfigWarning(re.compile(r"the default .* stays$"), ELSEWHERE, "write a value of that form"),
    ConfigWarning(re.compile(r"is named twice, ignored$"), ELSEWHERE, "keep one of the two"),
    ConfigWarning(
        re.compile(r"as Volcano spells it$"),
        ELSEWHERE,
        "spell it so: otherwise Volcano takes its default actions in place of all that are named",
    ),
    ConfigWarning(re.compile(r"takes its place$"), ELSEWHERE, "keep one of the two"),
    ConfigWarning(re.compile(r"$"), WORDS, "remove it; Volcano ignores it and does not say so"),
)
"""Forms of warnings, of which the first that matches counts; those about plugins and actions have rows of their own."""

NO_CONFIG = (
    "without it Pumice's default applies, which preempts and reclaims below the minimum of gangs",
    "give the ConfigMap by --config, and install with --set-file scheduler.config=FILE",
)
"""What happens if the chart gets no configuration, and what to do."""


class ChangedDecision(NamedTuple):
    """A plugin or an action that decides otherwise with the same configuration.

    Attributes:
        what: Whether it is a plugin or an action.
        name: Its name.
        outcome: What is different.
        remedy: The way back to what Volcano does, or what to do instead.
        argument: What the way back sets; who has set it has chosen.
        harm: What becomes of workload.
    """

    what: Literal["plugin", "action"]
    name: str
    outcome: str
    remedy: str
    argument: str = ""
    harm: Harm = ELSEWHERE


_LOOK = "compare by `pumice simulate`"

CHANGES = (
    ChangedDecision(
        "plugin",
        "task-topology",
        "keeps the pods of a bucket together; Volcano tears them apart in half of all runs",
        "argument task-topology.mode: volcano is the way back",
        "task-topology.mode",
    ),
    ChangedDecision(
        "plugin",
        "nodegroup",
        "required affinity and anti-affinity of a queue are required; in Volcano they are scores",
        "argument nodegroup.mode: volcano is the way back",
        "nodegroup.mode",
    ),
    ChangedDecision(
        "plugin",
        "priority",
        "orders a gang by the lower priority of its PodGroup and its pods; Volcano by the PodGroup's",
        "argument strict-upstream: true is the way back",
        "strict-upstream",
    ),
    ChangedDecision(
        "plugin",
        "proportion",
        "shares are exact and add up to the cluster; a capability of 0 cpu or memory is none, in Volcano no limit",
        "leave out of capabilities what is not limited",
    ),
    ChangedDecision(
        "plugin",
        "capacity",
        "keeps free what is guaranteed and not used, and evicts only below the parent that is at its capability",
        _LOOK,
    ),
    ChangedDecision(
        "plugin",
        "tdm",
        "a window across midnight is open until its end; times are UTC, in Volcano those of the machine",
        "set argument tdm.time-zone",
        "tdm.time-zone",
    ),
    ChangedDecision(
        "plugin",
        "resourcequota",
        "counts gangs that have entered and have no pods yet; does not look at quotas with scopes",
        _LOOK,
    ),
    ChangedDecision(
        "action",
        "preempt",
        "evicts on the node where that costs least; Volcano on the first by score",
        _LOOK,
    ),
    ChangedDecision(
        "action",
        "reclaim",
        "evicts on the node where that costs least, once the queue can take the pod; Volcano on the first node",
        _LOOK,
    ),
    *(
        ChangedDecision(
            "action",
            name,
            "evicts for the minimum of a gang, no more than it needs, and a broken gang with all its pods; all plugins protect",
            "argument wholeGang: domain leaves the other pods of a broken gang, as Volcano does",
            "wholeGang",
        )
        for name in ("gangpreempt", "gangreclaim")
    ),
)
"""Every change that a user can notice, by plugin and action."""
