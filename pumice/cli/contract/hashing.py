"""Whether a plugin's answers depend on the order of a set, which is another in every process.

The webhook and the controller ask the same plugin in different processes. A plugin that goes through a set
of names gives each of them another answer, and neither notices; so it is asked here by several processes
that hash differently. `python -m pumice.cli.contract.hashing REFERENCE NUMBER` is one of them.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from pumice.api.jobs import Job
from pumice.cli.contract.loading import load
from pumice.cli.contract.subject import said
from pumice.plugins import JobPlugin, builtin, dependencies

__all__ = ["answers_by_hash"]

_SEEDS = ("1", "2", "3")
_LIMIT = 60
"""Seconds for a process."""


def answers_by_hash(reference: str, number: int) -> str:
    """What is wrong; empty when every process gives the same answers.

    Args:
        reference: What the user called the plugin.
        number: Which one of the plugins there.
    """
    running = [_start(reference, number, seed) for seed in _SEEDS]
    answers = [each.communicate(timeout=_LIMIT) for each in running]
    for process, (_, complaint) in zip(running, answers, strict=True):
        if process.returncode:
            return f"a process of its own cannot ask it: {complaint.strip().splitlines()[-1]}"
    first = answers[0][0].splitlines()
    for other, _ in answers[1:]:
        for one, another in zip(first, other.splitlines(), strict=True):
            if one != another:
                return f"in one process {one} and in another {another}"
    return ""


def _start(reference: str, number: int, seed: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", __name__, reference, str(number)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _jobs(plugin: JobPlugin) -> Iterator[Job]:
    """Some Jobs of several tasks; those that the plugin's arguments name by default among them."""
    defaults = [each.default for each in plugin.arguments if isinstance(each.default, str)]
    for names in (defaults, ["ps", "worker", "chief"], ["a", "b", "c", "d", "e"]):
        tasks = [{"name": name, "replicas": 2} for name in dict.fromkeys(names) if name]
        plugins: dict[str, list[str]] = {plugin.name: []}
        plugins |= dependencies(plugins, builtin())
        yield msgspec.convert(
            {
                "metadata": {"name": "train", "namespace": "default"},
                "spec": {"plugins": plugins, "tasks": tasks},
            },
            Job,
        )


def main(arguments: list[str]) -> None:
    """Print a plugin's answers, one a line."""
    found = load(arguments[0])[int(arguments[1])]
    plugin = found() if isinstance(found, type) else found
    for job in _jobs(plugin):
        for what, answer in said(plugin, job).items():
            sys.stdout.write(f"{what} is {answer!r}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
