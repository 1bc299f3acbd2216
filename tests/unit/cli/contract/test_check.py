"""`pumice plugins check`: a plugin that keeps the contract passes, each that breaks it is told how."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from pumice.cli.contract.manifests import KINDS
from pumice.controller.loop.caches import OBJECT_KINDS
from pumice.plugins import builtin
from tests.unit.cli.conftest import Pumice

EXAMPLE = Path(__file__).parents[4] / "examples/job-plugin/pumice_jax.py"

HEAD = """\
import os
import random
import socket
import time
from datetime import datetime
from pathlib import Path

from pumice.plugins import *
from pumice.plugins import Argument, ArgumentSpec, EnvVar, JobPlugin, Mount, PodEdits, TEXT, address


class Mine(JobPlugin):
    name = "mine"
    summary = "Does something."
"""

CLOCK = """\
def pod_edits(self, job, values, task, index):
    return PodEdits(env=(EnvVar("STARTED", str({call})),))
"""

BROKEN = {
    "a name in capitals": (
        'name = "Mine"',
        "declared",
        'plugin "Mine" of',
    ),
    "no sentence": ('summary = "does something"', "declared", "is no sentence"),
    "help with a full stop": (
        'arguments = ArgumentSpec(Argument("port", TEXT, "", "A port."))',
        "declared",
        "the help of --port must be one line without a full stop",
    ),
    "requires what there is not": ('requires = ("svx",)', "declared", '(did you mean "svc"?)'),
    "comes after what there is not": ('after = ("svx",)', "declared", '(did you mean "svc"?)'),
    "raises": (
        """\
        def check(self, job, values):
            return len(job.tasks[0].template["spec"]["containers"])
        """,
        "total",
        "raises",
    ),
    "reads a clock": (CLOCK.format(call="time.time()"), "pure", "reads the clock (time.time in"),
    "reads the date": (
        CLOCK.format(call="datetime.now()"),
        "pure",
        "reads the clock (datetime.now in line 16 of mine.py)",
    ),
    "rolls dice": (
        CLOCK.format(call="random.randint(1, 6)"),
        "pure",
        "takes random numbers (random.getrandbits in line 16 of mine.py)",
    ),
    "reads a file": (
        CLOCK.format(call='Path("/etc/hostname").exists()'),
        "pure",
        "looks at the system (os.stat in line 16 of mine.py)",
    ),
    "opens a file": (
        CLOCK.format(call='open("/dev/null").close()'),
        "pure",
        "opens a file (open in line 16 of mine.py)",
    ),
    "reads the environment": (
        CLOCK.format(call='os.environ["PATH"]'),
        "pure",
        "reads the environment (os.environ in line 16 of mine.py)",
    ),
    "asks the network": (
        CLOCK.format(call="socket.gethostname()"),
        "pure",
        "uses the network (socket.gethostname in line 16 of mine.py)",
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
        "answers otherwise than a new one of its kind does: job_annotations",
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
    "asks twice": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(env=(EnvVar("A", "1"), EnvVar("A", "2")))
        """,
        "unique",
        "variable A twice",
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
        "edits",
        "the value of A is 0, expected text",
    ),
    "opens an impossible port": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(ports=(Port("p", 70000),))
        """,
        "edits",
        "port 70000 is none",
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
    "mounts what nobody makes": (
        """\
        def pod_edits(self, job, values, task, index):
            return PodEdits(volumes=({"name": "hosts", "configMap": {"name": "train-svc"}},))
        """,
        "dependencies",
        'volume "hosts" is of ConfigMap "train-svc", which neither it nor what it requires wants',
    ),
    "goes through a set": (
        """\
        def job_annotations(self, job, values):
            return {"tasks": ",".join({each.name for each in job.tasks})}
        """,
        "ordered",
        "in one process job_annotations is",
    ),
}


def written(folder: Path, body: str) -> Path:
    """A plugin of its own file."""
    file = folder / "mine.py"
    file.write_text(f"{HEAD}{indent(dedent(body), '    ')}\n")
    return file


@pytest.mark.parametrize(("body", "name", "problem"), BROKEN.values(), ids=list(BROKEN))
def test_a_plugin_that_breaks_the_contract_is_told_how(
    pumice: Pumice, tmp_path: Path, body: str, name: str, problem: str
) -> None:
    file = written(tmp_path, body)

    ran = pumice("plugins", "check", file, "--examples", "20", "-o", "json")

    assert ran.code == 1
    [found] = ran.json
    failed = {each["name"]: each["problem"] for each in found["properties"] if not each["passed"]}
    assert problem in failed[name]
    assert set(failed) <= {name, "pure"}


def test_the_smallest_example_is_shown(pumice: Pumice, tmp_path: Path) -> None:
    body, _, _ = BROKEN["refers to another's variable"]

    ran = pumice("plugins", "check", written(tmp_path, body))

    assert ran.code == 1
    assert "failed  dependencies  what it leans on is required\n          LOG refers to" in ran.out
    smallest = """
        spec:
          plugins:
            mine: []
          tasks:
          - name: worker
            replicas: 0
            template:
              spec:
                containers:
                - name: main
    """
    assert indent(dedent(smallest).strip(), " " * 12) in ran.out


def test_the_example_keeps_the_contract(pumice: Pumice) -> None:
    ran = pumice("plugins", "check", EXAMPLE)

    assert (ran.code, ran.err) == (0, "")
    first, *sentences = ran.out.splitlines()
    assert first == f"jax of {EXAMPLE}"
    assert [each.split()[:2] for each in sentences] == [
        ["ok", name]
        for name in (
            "declared",
            "total",
            "pure",
            "idempotent",
            "keeps",
            "unique",
            "edits",
            "objects",
            "dependencies",
            "ordered",
        )
    ]


@pytest.mark.parametrize("plugin", builtin().plugins, ids=lambda each: each.name)
def test_the_built_in_ones_keep_it(pumice: Pumice, plugin: object) -> None:
    reference = f"{type(plugin).__module__}:{type(plugin).__name__}"
    ran = pumice("plugins", "check", reference, "--examples", "15")
    assert ran.code == 0, ran.out


def test_all_plugins_of_a_module_are_checked(pumice: Pumice, tmp_path: Path) -> None:
    file = written(tmp_path, "")
    file.write_text(f'{file.read_text()}\n\nclass Other(Mine):\n    name = "other"\n')

    ran = pumice("plugins", "check", file, "--examples", "5", "-o", "json")
    one = pumice("plugins", "check", f"{file}:Other", "--examples", "5", "-o", "json")

    assert [(each["plugin"], each["passed"]) for each in ran.json] == [
        ("mine", True),
        ("other", True),
    ]
    assert [each["plugin"] for each in one.json] == ["other"]


def test_a_name_that_is_taken_breaks_it(pumice: Pumice, tmp_path: Path) -> None:
    ran = pumice("plugins", "check", written(tmp_path, 'name = "svc"'))
    assert ran.code == 1
    assert "the name is taken by the plugin of pumice" in ran.out


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ((), "check which plugin?"),
        (("no_such_module",), "no_such_module cannot be imported: ModuleNotFoundError"),
        (("no-such.py",), "no-such.py: no such file"),
        (("{file}:Mein",), "has no 'Mein' (did you mean \"Mine\"?)"),
        (("{empty}",), "defines no subclass of pumice.plugins.JobPlugin"),
        (("{raises}",), "cannot be imported: ZeroDivisionError"),
    ],
)
def test_what_is_no_plugin_is_one_clear_line(
    pumice: Pumice, tmp_path: Path, reference: tuple[str, ...], line: str
) -> None:
    empty, raises = tmp_path / "empty.py", tmp_path / "raises.py"
    empty.write_text("")
    raises.write_text("1 / 0\n")
    file = written(tmp_path, "")
    named = [each.format(file=file, empty=empty, raises=raises) for each in reference]

    ran = pumice("plugins", "check", *named)

    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err
    assert len(ran.err.splitlines()) == 1


def test_without_hypothesis_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None; from pumice.cli import main; "
        f"sys.exit(main(['plugins', 'check', {str(EXAMPLE)!r}]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 2
    assert "check needs hypothesis: pip install 'pumice[check]'" in ran.stderr


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "plugins", "check", EXAMPLE, "--examples", "5"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_kinds_are_those_that_the_controller_watches() -> None:
    assert set(KINDS) == set(OBJECT_KINDS)
