"""Plugin `task-topology`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.task_lists import format_groups, read_groups
from pumice.plugins import Raw, Wiring, builtin, job_annotations, problems
from tests.unit.plugins.support import job, pod_of, rows, task

KEYS = {
    "affinity": "volcano.sh/task-topology-affinity",
    "anti-affinity": "volcano.sh/task-topology-anti-affinity",
    "task-order": "volcano.sh/task-topology-task-order",
    "json": "volcano.sh/task-topology",
}


@pytest.mark.parametrize("row", rows("task-topology"))
def test_wishes_become_annotations(row: dict[str, Any]) -> None:
    placed = job(
        "j",
        *(task(name) for name in row.get("tasks", ["ps", "worker"])),
        annotations=row.get("annotations"),
        plugins={"task-topology": row["arguments"]},
    )

    annotations = job_annotations(placed, builtin())

    assert annotations == {key: row[name] for name, key in KEYS.items() if name in row}
    found = problems(placed, builtin())
    assert found.errors == ()
    assert len(found.warnings) == len(row.get("warned", ()))
    for warning, fragment in zip(found.warnings, row.get("warned", ()), strict=True):
        assert fragment in warning.message


def test_annotations_written_once_are_not_written_again() -> None:
    def annotations(present: dict[str, str]) -> dict[str, str]:
        plugins = {"task-topology": ["--affinity=ps,worker"]}
        placed = job("j", task("ps"), task("worker"), annotations=present, plugins=plugins)
        assert problems(placed, builtin()).warnings == ()
        return job_annotations(placed, builtin())

    assert annotations(annotations({})) == {}


def test_pods_are_only_marked() -> None:
    placed = job("j", task("ps"), plugins={"task-topology": []})
    pod = pod_of("j-ps-0", "ps")

    edited = Wiring(placed, builtin()).pod(placed.tasks[0], 0, pod)

    assert edited["spec"] is pod["spec"]


def spellings(groups: list[list[str]]) -> list[str]:
    quoted = ", ".join("[" + ", ".join(f'"{name}"' for name in group) + "]" for group in groups)
    bare = ",".join("[" + ",".join(group) + "]" for group in groups)
    return [f"[{quoted}]", f"[{bare}]", ";".join(",".join(group) for group in groups)]


@given(
    st.lists(
        st.lists(st.from_regex("[a-z][a-z0-9-]{0,5}", fullmatch=True), min_size=1, unique=True),
        max_size=4,
    )
)
def test_all_spellings_mean_the_same(groups: list[list[str]]) -> None:
    expected = tuple(tuple(group) for group in groups)

    assert [read_groups(text) for text in spellings(groups)] == [expected] * 3
    assert read_groups(format_groups(expected)) == expected


def reading(text: str) -> str:
    """Why a text is refused, empty when it is not."""
    try:
        groups = read_groups(text)
    except ValueError as error:
        return str(error)
    assert all(name for group in groups for name in group)
    return ""


@given(st.text(alphabet="[],;\"' ab-", max_size=12))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    refusal = reading(text)

    assert refusal == "" or refusal.startswith("expected ")


def test_deep_nesting_is_refused_quickly() -> None:
    with pytest.raises(ValueError, match="expected lists"):
        read_groups("[" * 100_000)


def test_the_annotations_are_what_the_design_asks_for() -> None:
    """`docs/design/bucket.md` of Volcano: the annotation is written only where it is not found."""
    manifest: Raw = {"volcano.sh/task-topology": "mine"}
    plugins = {"task-topology": ["--affinity", "[[ps, worker]]"]}
    placed = job("j", task("ps"), task("worker"), annotations=manifest, plugins=plugins)

    assert job_annotations(placed, builtin()) == {KEYS["affinity"]: "ps,worker"}
