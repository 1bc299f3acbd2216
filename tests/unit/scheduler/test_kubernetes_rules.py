"""Pods may run on the nodes on which the real kube-scheduler lets them run, as `make kubernetes-rules` has recorded."""

from collections import Counter
from pathlib import Path

import pytest

from tests.reference.feasible import BUILT, feasible
from tests.reference.records import FAMILIES, families, key_of, read
from tests.unit.scheduler.scenarios import load_cases

DOCS = Path(__file__).parents[3] / "docs"
RECORDS = list(read())
DIFFERENCES = load_cases("kubernetes_differences")


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_pods_may_run_where_kube_scheduler_lets_them_run(number: int) -> None:
    found = feasible(RECORDS[number])
    expected = {key: RECORDS[number]["feasible"][key] for key in found}

    different = {key for key in found if found[key] != expected[key]}
    known = {row["pod"] for row in DIFFERENCES if row["cluster"] == number}
    shown = different ^ (known & found.keys())
    assert {key: found[key] for key in shown} == {key: expected[key] for key in shown}
    assert not shown, "differences that are listed, and are none any more"


@pytest.fixture(scope="module")
def counts() -> Counter[tuple[str, str]]:
    """Recorded pods by family, and by whether they fit nowhere, on some nodes or on all."""
    found: Counter[tuple[str, str]] = Counter()
    for record in RECORDS:
        for pod in record["pods"]:
            fitting = len(record["feasible"][key_of(pod)])
            kind = "all" if fitting == len(record["nodes"]) else "some" if fitting else "nowhere"
            found.update((family, kind) for family in families(record, pod))
    return found


def test_each_family_is_recorded_with_pods_that_fit_somewhere_and_pods_that_do_not(
    counts: Counter[tuple[str, str]],
) -> None:
    assert sum(len(record["pods"]) for record in RECORDS) == 2000
    assert set(FAMILIES) >= BUILT
    for family in FAMILIES:
        assert counts[family, "some"] >= 100, (family, counts)
        assert counts[family, "nowhere"] >= 50, (family, counts)


def test_the_page_shows_how_many_were_recorded(counts: Counter[tuple[str, str]]) -> None:
    text = (DOCS / "scheduler" / "kubernetes-rules.md").read_text()
    for family in FAMILIES:
        name = "nodes and resources" if family in ("nodes", "resources") else family
        numbers = " | ".join(f"{counts[family, kind]:,}" for kind in ("nowhere", "some", "all"))
        known = sum(row["family"] == family for row in DIFFERENCES)
        assert f"| {name} | {numbers} | {known} |" in text
