"""Notes in a Job's status about 100,000 pods: they stay short, and counts are never lower than they were."""

import random

import pytest

from pumice.controller.jobs import job_pods, podsets, restart_budgets
from pumice.controller.jobs.podsets import PodNames
from pumice.controller.jobs.restart_budgets import RestartCount, RestartUnit
from pumice.controller.jobs.subject import read
from tests.kit.builders import job, task

HUGE = PodNames(read(job(tasks=[task("worker", 100_000)])))


def _tallies(most: int, kind: str = "pod", pods: int = 100_000) -> dict[RestartUnit, RestartCount]:
    chosen = random.Random(most)
    return {
        (kind, "worker", str(at)): RestartCount(chosen.randint(1, most), chosen.randint(0, 6))
        for at in range(pods)
    }


@pytest.mark.parametrize(
    ("most", "kind", "pods"),
    [(3, "pod", 100_000), (30, "partition", 100_000), (1_000_000, "pod", 20_000)],
)
def test_tallies_of_many_are_short_and_never_lower(most: int, kind: str, pods: int) -> None:
    tallies = _tallies(most, kind, pods)
    text = restart_budgets.write(tallies)
    assert len(text) <= restart_budgets.LONGEST
    found = restart_budgets.read(text, HUGE)
    assert found.keys() == tallies.keys()
    assert all(found[unit] >= tally for unit, tally in tallies.items())
    assert max(found.values()).count == max(tallies.values()).count
    assert restart_budgets.write(found) == text


def test_as_many_tallies_as_the_usual_budget_has_are_exact() -> None:
    levels = [
        RestartCount(1, 0),
        RestartCount(1, 1),
        RestartCount(2, 0),
        RestartCount(2, 1),
        RestartCount(2, 2),
    ]
    chosen = random.Random(1)
    tallies = {("pod", "worker", str(at)): chosen.choice(levels) for at in range(100_000)}
    assert restart_budgets.read(restart_budgets.write(tallies), HUGE) == tallies


def test_the_highest_tallies_stay_exact() -> None:
    tallies = _tallies(30)
    tallies["pod", "worker", "7"] = RestartCount(31, 2)
    found = restart_budgets.read(restart_budgets.write(tallies), HUGE)
    assert found["pod", "worker", "7"] == RestartCount(31, 2)
    raised = [unit for unit, tally in tallies.items() if found[unit] != tally]
    kept = [tally for unit, tally in tallies.items() if found[unit] == tally]
    assert max(tallies[unit] for unit in raised) <= min(kept)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 1.0])
def test_a_note_of_100_000_pods_is_short_whichever_they_are(share: float) -> None:
    chosen = random.Random(1)
    pods = {HUGE.name("worker", at) for at in range(100_000) if chosen.random() < share}
    text = podsets.write(pods, HUGE)
    assert len(text) < 17_000
    assert podsets.read(text, HUGE) == pods


def test_many_moments_of_many_evictions_are_short() -> None:
    made = read(job(tasks=[task("worker", 100_000)]))
    chosen = random.Random(1)
    moments = {f"train-worker-{at}": 1e9 + chosen.randint(0, 99) for at in range(100_000)}
    text = job_pods.read(made, (), 2e9).running(lambda _: False, moments, {})[job_pods.EVICTED]
    assert len(text) <= job_pods.LONGEST
    assert text.count("@") > 1
