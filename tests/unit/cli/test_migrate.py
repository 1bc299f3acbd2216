"""`pumice migrate check`: what would change for a cluster of Volcano, the greatest harm first."""

from pathlib import Path
from typing import Any

import pytest

from pumice.api.not_here_yet import HARMS
from pumice.cli.migration import ranks
from pumice.cli.migration.reading import of_cluster
from pumice.cluster.client import Client
from pumice.cluster.errors import InvalidName
from pumice.scheduler.registry import builtin_registry
from pumice.webhook.rules.catalogue import by_code
from tests.kit import tables
from tests.kit.builders import job, pod, queue, task
from tests.unit.cli.conftest import Pumice, Ran, texts
from tests.unit.cluster.tiny import status, tiny_api

CLUSTER = tables.CASES / "cli/migration/cluster.yaml"
EXPECTED = tables.table("cli/migration/findings")


def checked(pumice: Pumice, *arguments: object, stdin: str = "") -> Any:
    ran = pumice("migrate", "check", *arguments, "-o", "json", stdin=stdin)
    assert ran.code in (0, 1), ran.err
    assert ran.code == (1 if ran.json["summary"]["would not run"] else 0)
    return ran.json


def found_in(pumice: Pumice, *objects: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings about objects, without the one about the configuration."""
    found = checked(pumice, "--state", "-", stdin=texts(*objects))["findings"]
    return [each for each in found if each["code"] != "SCHED-DEFAULT"]


async def test_a_namespace_that_nothing_can_have_is_no_kind_that_is_not_installed(
    tmp_path: Path,
) -> None:
    """Of a context whose user may read only its own namespace."""
    file = tmp_path / "config"
    context = {"cluster": "c", "namespace": "a/b"}
    async with tiny_api() as api:
        clusters = [{"name": "c", "cluster": {"server": api.url}}]
        contexts = [{"name": "x", "context": context}]
        file.write_text(texts({"current-context": "x", "contexts": contexts, "clusters": clusters}))
        for _ in range(20):
            api.answer_next(403, status(403, "Forbidden"))
        async with Client.connect(str(file)) as client:
            with pytest.raises(InvalidName, match='invalid namespace "a/b"'):
                await of_cluster(client, config_map=False)


def test_a_cluster_is_told_job_by_job_and_key_by_key_in_the_order_of_harm(pumice: Pumice) -> None:
    found = checked(pumice, "--state", CLUSTER)
    told: dict[str, list[list[str]]] = {}
    for each in found["findings"]:
        told.setdefault(each["harm"], []).append([each["object"], each["path"], each["code"]])
        assert each["message"]
        assert each["remedy"]
    assert list(told) == list(HARMS)
    assert told == EXPECTED
    assert found["summary"] == {harm: len(rows) for harm, rows in EXPECTED.items()}
    assert found["read"]["Job"] == 6
    assert found["notAllowed"] == []


def test_as_text_what_is_alike_is_told_once_with_its_remedy(pumice: Pumice) -> None:
    ran = pumice("migrate", "check", "--state", CLUSTER)
    assert (ran.code, ran.err) == (1, "")
    first, *lines = ran.out.splitlines()
    assert first == "Would not run:"
    assert [line for line in ran.out.splitlines() if line.endswith(":") and line[0] != " "] == [
        "Would not run:",
        "Would run elsewhere or evict:",
        "Other words:",
    ]
    at = lines.index("  Job/vision/shared-1 (and 1 more alike)")
    assert lines[at + 2].startswith("      -> ask for whole devices")
    assert "shared-2" not in ran.out
    assert lines[-1].endswith(
        "findings: 7 would not run, 12 would run elsewhere or evict, 6 other words"
    )


def test_what_was_read_is_counted_in_words(pumice: Pumice) -> None:
    kinds = ("PriorityClass", "NetworkPolicy", "Gateway")
    others = [{"apiVersion": "v1", "kind": each, "metadata": {"name": "a"}} for each in kinds]
    both = [each | {"metadata": {"name": "b"}} for each in others]
    objects = [queue("q"), job("a"), job("b"), *others, *both]
    ran = pumice("migrate", "check", "--state", "-", stdin=texts(*objects))
    assert ran.out.splitlines()[-1].partition(";")[0] == (
        "read: 2 Gateways, 2 Jobs, 2 NetworkPolicies, 2 PriorityClasses, 1 Queue"
    )
    ran = pumice("migrate", "check", "--state", "-", stdin=texts(job()))
    assert "\nread: 1 Job; " in ran.out


def test_what_would_not_change_leads_to_exit_code_0(pumice: Pumice, tmp_path: Path) -> None:
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]\n")
    found = checked(pumice, "--state", "-", "--config", conf, stdin=texts(queue("q"), job()))
    assert found["findings"] == []


def test_without_a_configuration_the_default_evicts(pumice: Pumice) -> None:
    (found,) = checked(pumice, "--state", "-", stdin=texts(job()))["findings"]
    assert (found["harm"], found["path"]) == ("would run elsewhere or evict", "scheduler.config")
    assert "preempts and reclaims below the minimum of gangs" in found["message"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_configuration_that_cannot_be_used_would_run_nothing(
    pumice: Pumice, tmp_path: Path, wrapped: bool
) -> None:
    text = "actions: allocate\ntiers: [{plugins: [{name: house-plugin}]}]"
    if wrapped:
        lines = "".join(f"\n    {line}" for line in text.splitlines())
        text = f"kind: ConfigMap\ndata:\n  volcano-scheduler.conf: |{lines}\n"
    conf = tmp_path / "conf.yaml"
    conf.write_text(text)
    told = checked(pumice, "--state", "-", "--config", conf, stdin=texts(job()))
    (found,) = told["findings"]
    assert (found["harm"], found["object"]) == ("would not run", str(conf))
    assert found["code"] == "SCHED-UNKNOWN-PLUGIN"
    assert found["path"] == "tiers[0].plugins[0].name"


def test_a_rule_that_is_stricter_than_volcanos_can_be_set_to_warn(pumice: Pumice) -> None:
    odd = job(
        tasks=[task("w", 1)],
        policies=[{"event": "PodFailed", "action": "RestartJob", "timeout": "soon"}],
        plugins={"none": []},
    )
    remedies = {each["code"]: each["remedy"] for each in found_in(pumice, odd)}
    assert remedies["POL-TIMEOUT"].endswith("with setting rule.POL-TIMEOUT=warn")
    assert "package" in remedies["JOB-PLUGIN"]


def test_a_closed_queue_is_none_of_pumices_doing(pumice: Pumice) -> None:
    closed = queue("q") | {"status": {"state": "Closed"}}
    assert found_in(pumice, closed, job(queue="q"), job("other", queue="gone")) == []


def test_pods_of_one_owner_are_told_once_and_those_of_others_not_at_all(pumice: Pumice) -> None:
    def claiming(name: str, kind: str, uid: str, **spec: Any) -> dict[str, Any]:
        found = pod(name, resourceClaims=[{"name": "gpu"}], **spec)
        version = "batch.volcano.sh/v1alpha1" if kind == "Job" else "apps/v1"
        owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": uid, "controller": True}
        found["metadata"]["ownerReferences"] = [owner]
        return found

    pods = [
        claiming("a-1", "ReplicaSet", "a"),
        claiming("a-2", "ReplicaSet", "a"),
        claiming("b-1", "ReplicaSet", "b"),
        claiming("c-1", "ReplicaSet", "c", schedulerName="default-scheduler"),
        claiming("d-1", "Job", "d"),
    ]
    assert [each["object"] for each in found_in(pumice, *pods)] == [
        "Pod/default/a-1",
        "Pod/default/b-1",
    ]


def test_what_many_fields_of_an_object_have_in_common_is_told_once(pumice: Pumice) -> None:
    tasks = [task(f"t{n}", topologyPolicy="restricted", cpu="1") for n in range(150)]
    (found,) = found_in(pumice, job(tasks=tasks))
    assert found["path"] == "spec.tasks[0].topologyPolicy"
    assert found["message"].endswith("(here and in 149 more)")


def test_of_very_many_findings_the_most_harmful_are_told(pumice: Pumice) -> None:
    tasks = [task(f"t{n}", topologyPolicy="restricted", cpu="1") for n in range(150)]
    for number, each in enumerate(tasks):
        each["maxRetry"] = -1 - number
        each["policies"] = [
            {"event": "PodFailed", "action": "RestartJob", "timeout": f"{number} x"}
        ]
    found = found_in(pumice, job(tasks=tasks))
    assert len(found) == 101
    assert {each["harm"] for each in found} == {"would not run"}
    assert found[-1]["message"].startswith("and ")
    assert found[-1]["message"].endswith(" more findings, which `pumice lint` shows")


ODD: tuple[dict[str, Any], ...] = (
    {"metadata": [], "spec": 1},
    {"metadata": {"name": "x", "ownerReferences": {"kind": "Job"}}, "spec": []},
    {"metadata": {"name": "x", "ownerReferences": [1, {"uid": []}], "uid": {}}, "spec": {"a": 1}},
    {"metadata": {"name": "x", "ownerReferences": [{"kind": "Job", "uid": []}]}, "spec": {}},
    {"metadata": None, "spec": {"tasks": [None], "schedulerName": ["volcano"], "flows": 3}},
)
KINDS = (
    *(("batch.volcano.sh/v1alpha1", "Job"), ("batch.volcano.sh/v1alpha1", "CronJob")),
    *(("scheduling.volcano.sh/v1beta1", "Queue"), ("scheduling.volcano.sh/v1beta1", "PodGroup")),
    *(("v1", "Pod"), ("v1", "ConfigMap"), ("nodeinfo.volcano.sh/v1alpha1", "Numatopology")),
    ("flow.volcano.sh/v1alpha1", "JobFlow"),
)


@pytest.mark.parametrize("kind", KINDS, ids=[kind for _, kind in KINDS])
def test_objects_of_any_form_are_told_of_in_lines(pumice: Pumice, kind: tuple[str, str]) -> None:
    version, name = kind
    for odd in ODD:
        raw = {"apiVersion": version, "kind": name, "data": [], **odd}
        ran: Ran = pumice("migrate", "check", "--state", "-", stdin=texts(raw))
        assert ran.code in (0, 1, 2)
        assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--state", "none.yaml"], "none.yaml: no such file"),
        (["--state", "-", "--context", "c"], "--state is read instead of a cluster"),
        (["--state", "-", "--config", "none.conf"], "none.conf: no such file"),
    ],
)
def test_a_mistake_is_one_line(pumice: Pumice, arguments: list[str], said: str) -> None:
    ran = pumice("migrate", "check", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_several_files_may_follow(pumice: Pumice, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.json" for name in ("a", "b")]
    for file in files:
        file.write_text(texts(job(file.stem)))
    assert checked(pumice, "--state", *files)["read"] == {"Job": 2}


def test_tables_of_ranks_are_about_what_there_is() -> None:
    codes = {*ranks.SAME, *ranks.WARNED, *ranks.REMEDIES}
    assert [code for code in codes if not code.startswith("SCHEMA-") and not by_code(code)] == []
    levels = {code: rule.level for code in ranks.WARNED if (rule := by_code(code)) is not None}
    assert set(levels.values()) == {"warn"}
    registry = builtin_registry()
    for change in ranks.CHANGES:
        known: Any = registry.plugins if change.what == "plugin" else registry.actions
        declared = {each.name for each in known[change.name].arguments}
        assert not change.argument or change.argument in declared
