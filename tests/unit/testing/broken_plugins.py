"""Plugins that break the contract, each in one way, by what is wrong with them."""

HEAD = """\
import os
import random
import socket
import time
from datetime import datetime
from pathlib import Path

from pumice.plugins import *
from pumice.plugins import EnvVar, JobPlugin, Mount, PodEdits, address


class Mine(JobPlugin):
    name = "mine"
    summary = "Does something."
"""

CLOCK = """\
def pod_edits(self, job, values, task, index):
    return PodEdits(env=(EnvVar("STARTED", str({call})),))
"""

OTHERWISE = "answers otherwise when it is asked again: pod_edits.worker-"

IMPURE = {
    "reads a clock": ("time.time()", OTHERWISE),
    "reads the date": ("datetime.now()", OTHERWISE),
    "rolls dice": ("random.randint(1, 6)", OTHERWISE),
    "looks into the environment": ('os.environ.get("PATH")', OTHERWISE),
    "needs the environment": ('os.environ["PATH"]', "failed with KeyError: 'PATH'"),
}
"""What a plugin calls, and what is said of it."""

BROKEN = {
    "a name in capitals": (
        'name = "Mine"',
        "declared",
        'plugin "Mine" of',
    ),
    "requires what there is not": ('requires = ("svx",)', "declared", '(did you mean "svc"?)'),
    "raises": (
        """\
        def check(self, job, values):
            len(job.tasks[0].template["spec"]["containers"])
            return Findings()
        """,
        "answers",
        "failed with TypeError",
    ),
    "exits": (
        """\
        def check(self, job, values):
            raise SystemExit(3)
        """,
        "answers",
        "failed with SystemExit: 3 (mine.py, line 16)",
    ),
    "finds nothing at all": (
        """\
        def check(self, job, values):
            return None
        """,
        "answers",
        "check gives None, expected Findings",
    ),
    "finds texts": (
        """\
        def check(self, job, values):
            return Findings(errors=("bad",))
        """,
        "answers",
        "check has 'bad' among its errors, expected FieldError",
    ),
    "annotates with numbers": (
        """\
        def job_annotations(self, job, values):
            return {"a": 5}
        """,
        "answers",
        "job_annotations gives 5 for 'a', expected texts",
    ),
    "annotates under no name": (
        """\
        def job_annotations(self, job, values):
            return {"a b": "c"}
        """,
        "answers",
        'annotation of the Job "a b": ',
    ),
    "wants numbers for secrets": (
        """\
        def secrets(self, job, values):
            return [1]
        """,
        "answers",
        "secrets gives 1, expected KeySecret",
    ),
    "remembers the first Job in its class": (
        """\
        seen = {}

        def pod_edits(self, job, values, task, index):
            first = Mine.seen.setdefault("first", job.metadata.name)
            return PodEdits(env=(EnvVar("FIRST", first),))
        """,
        "pure",
        "keeps something between calls: Mine.seen was {} and is now {'first':",
    ),
    "remembers Jobs by their size": (
        """\
        seen = {}

        def job_annotations(self, job, values):
            return {"first": Mine.seen.setdefault(job.replicas, job.metadata.name)}
        """,
        "pure",
        "keeps something between calls: Mine.seen was {} and is now {",
    ),
    "counts its calls": (
        """\
        calls = 0

        def job_annotations(self, job, values):
            Mine.calls += 1
            return {"calls": str(Mine.calls)}
        """,
        "pure",
        "answers otherwise when it is asked again: job_annotations",
    ),
    "remembers the first Job": (
        """\
        def job_annotations(self, job, values):
            self.first = getattr(self, "first", job.tasks[0].name)
            return {"first": self.first}
        """,
        "pure",
        "keeps something between calls: self.first was nothing and is now",
    ),
    "changes the Job": (
        """\
        def check(self, job, values):
            job.spec.plugins["mine"] = ["--seen"]
            return Findings()
        """,
        "pure",
        "changes the Job that it is given",
    ),
    "sets an impossible variable": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(env=(EnvVar("A=B", "1"),))
        """,
        "edits",
        'variable "A=B"',
    ),
    "sets a number": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(env=(EnvVar("A", index),))
        """,
        "answers",
        "the value of A is 0, expected text",
    ),
    "gives a port where a tuple is expected": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(ports=(Port("p", 80)))
        """,
        "answers",
        "failed with TypeError: 'Port' object is not iterable",
    ),
    "labels with a number": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(labels={"index": index})
        """,
        "edits",
        "the value of label index 0: expected text",
    ),
    "opens an impossible port": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(ports=(Port("p", 70000),))
        """,
        "edits",
        "port 70000 is none",
    ),
    "opens a port with a fraction": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(ports=(Port("p", 8080.0),))
        """,
        "edits",
        "port 8080.0 is none",
    ),
    "gives a volume as text": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(volumes=("data",))
        """,
        "edits",
        "a value of the wrong type: AttributeError(",
    ),
    "mounts nothing": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(mounts=(Mount("data", "/data"),))
        """,
        "edits",
        'mounts volume "data", which its volumes do not hold',
    ),
    "wants what the controller does not write": (
        """\
        def objects(self, job, values):
            metadata = {"name": job.metadata.name, "namespace": job.metadata.namespace}
            return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}]
        """,
        "objects",
        'the controller writes no "v1 Pod" for plugins',
    ),
    "wants an object elsewhere": (
        """\
        def objects(self, job, values):
            metadata = {"name": job.metadata.name, "namespace": "kube-system"}
            return [{"apiVersion": "v1", "kind": "Service", "metadata": metadata}]
        """,
        "objects",
        "is not in the Job's namespace",
    ),
    "shares an object between Jobs": (
        """\
        def objects(self, job, values):
            metadata = {"name": "mine", "namespace": job.metadata.namespace}
            return [{"apiVersion": "v1", "kind": "Service", "metadata": metadata}]
        """,
        "objects",
        'two Jobs of a namespace would share the Service "mine"',
    ),
    "uses addresses that nobody makes resolve": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(env=(EnvVar("FIRST", address(job, task, 0)),))
        """,
        "dependencies",
        'add "svc" to requires',
    ),
    "refers to another's variable": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(env=(EnvVar("LOG", "/logs/$(VC_TASK_INDEX)"),))
        """,
        "dependencies",
        "LOG refers to $(VC_TASK_INDEX), which no plugin that it requires",
    ),
} | {name: (CLOCK.format(call=call), "pure", problem) for name, (call, problem) in IMPURE.items()}
"""The body of a plugin, the property that it breaks, and what is said of it."""
