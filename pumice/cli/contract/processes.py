"""Whether a plugin answers the same wherever it is asked, and whatever it was asked before.

The webhook and the controller ask the same plugin in different processes. A plugin that goes through a set
of names gives each of them another answer, for the order of a set is another in every process; and one that
keeps something between calls answers by the Job that its process saw first. Neither shows within one
process, so several ask it here: some hash differently, one goes through the Jobs backwards.
`python -m pumice.cli.contract.processes REFERENCE NUMBER ORDER` is one of them.
"""

import os
import subprocess
import sys

from pumice.cli.contract.loading import load
from pumice.cli.contract.samples import samples
from pumice.cli.contract.subject import said
from pumice.plugins.applied import FAILURES

__all__ = ["answers_by_process"]

_SEEDS = ("1", "2", "3")
_FORWARDS, _BACKWARDS = "forwards", "backwards"
_LIMIT = 60
"""Seconds for a process."""


def answers_by_process(reference: str, number: int) -> str:
    """What is wrong; empty when every process gives the same answers.

    Args:
        reference: What the user called the plugin.
        number: Which one of the plugins there.
    """
    running = [_start(reference, number, seed, _FORWARDS) for seed in _SEEDS]
    running.append(_start(reference, number, _SEEDS[0], _BACKWARDS))
    try:
        answers = [each.communicate(timeout=_LIMIT) for each in running]
    except subprocess.TimeoutExpired:
        return f"a process of its own has asked it for {_LIMIT} seconds, and has no answers yet"
    finally:
        for process in running:
            process.kill()
    for process, (_, complaint) in zip(running, answers, strict=True):
        if process.returncode:
            last = (complaint.strip().splitlines() or [f"it ends with {process.returncode}"])[-1]
            return f"a process of its own cannot ask it: {last}"
    first, *others, backwards = (lines.splitlines() for lines, _ in answers)
    for other in others:
        for one, another in zip(first, other, strict=True):
            if one != another:
                return f"in one process {_answer(one)} and in another {_answer(another)}"
    for one, another in zip(first, backwards, strict=True):
        if one != another:
            return (
                f"it keeps something between calls: of Job {one.partition(' ')[0]}, {_answer(one)}, and "
                f"when it was asked about other Jobs before, {_answer(another)}"
            )
    return ""


def _answer(line: str) -> str:
    return line.partition(" ")[2]


def _start(reference: str, number: int, seed: str, order: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", __name__, reference, str(number), order],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main(arguments: list[str]) -> None:
    """Print a plugin's answers, one a line: the Job's name, and what is what."""
    reference, number, order = arguments
    found = load(reference)[int(number)]
    plugin = found() if isinstance(found, type) else found
    jobs = list(samples(plugin))
    told: dict[int, list[str]] = {}
    for position in range(len(jobs)) if order == _FORWARDS else reversed(range(len(jobs))):
        job = jobs[position]
        told[position] = [
            f"{job.metadata.name} {what} is {answer!r}\n"
            for what, answer in said(plugin, job).items()
        ]
    for position in sorted(told):
        sys.stdout.writelines(told[position])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FAILURES as error:
        sys.exit(repr(error))
