"""Rows of every case table through the real kube-apiserver, which has policies and calls no webhook.

A row is refused if the rules refuse it for which its kind has policies, with the codes of these in the message, and is
admitted otherwise; what is stored then is what the webhook would have made of it, but for defaults that are the
webhook's. Which rules and defaults these are the coverage table says, and for every row that is left out there is a
reason.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from pumice.api.kinds import JOB, POD, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden, Invalid
from pumice.webhook.policies.coverage import DEFAULTS_LEFT, PARTLY, SCHEMA, left_out
from pumice.webhook.policies.manifests import policies
from pumice.webhook.policies.mutations import mutations
from pumice.webhook.policies.rooms import ROOMS, forms_of
from pumice.webhook.rules import catalogue
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.judged_cluster import JudgedCluster, Verdict
from tests.integration.webhook.policed_cluster import by_policy, manifests, policed, told
from tests.integration.webhook.test_table_controlplane import can_be_asked
from tests.integration.webhook.verdicts import Expected, expected
from tests.unit.webhook.reviewing import KINDS, Raw, Row, request, rows
from tests.unit.webhook.template_rows import TemplateRow, template_rows

_JOBS = "/jobs/validate"
PATIENCE = 20
"""Times that a row is asked while the API server may not know yet what its namespace says."""


@cache
def rendered(settings: tuple[str, ...], kind: Kind) -> str:
    """The policies of a kind; settings that make the same need not be tried one by one."""
    return json.dumps(manifests(AdmissionSettings.from_assignments(settings), (kind,)))


def further_rows() -> Iterator[Row]:
    """What the tables show only of objects that the API server refuses first, or not at all."""
    job = {"metadata": {"name": "j", "namespace": "default"}, "spec": {"tasks": [*_tasks(1)]}}
    parts = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 2}
    task = {**next(_tasks(1)), "replicas": 8, "minAvailable": 3, "partitionPolicy": parts}
    twice = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}
    ring = [*_tasks(40)]
    ring[0] = {**ring[0], "dependsOn": {"name": ["task39"]}}
    cluster = {"name": "east", "weight": -1, "capacity": {"cpu": "-1"}}
    group = {"minResources": {"nvidia.com/gpu": "500m", "pods": "-1"}}
    for path, spec, codes in (
        (_JOBS, {"tasks": [task]}, ["PART-MIN"]),
        (_JOBS, {"tasks": [*_tasks(1)], "networkTopology": twice}, ["JOB-TOPO-BOTH"]),
        (_JOBS, {"tasks": ring}, ["JOB-NOT-DAG"]),
        (_JOBS, {"tasks": [*_tasks(50)]}, []),
        (
            "/queues/validate",
            {"extendClusters": [cluster]},
            ["Q-CLUSTER-WEIGHT", "Q-CLUSTER-CAPACITY"],
        ),
        ("/podgroups/validate", {"minMember": 1, **group}, ["PG-MIN-RESOURCES"]),
    ):
        namespace = {} if path.startswith("/queues") else {"namespace": "default"}
        asked = request(path, {**job, "metadata": {"name": "j", **namespace}, "spec": spec})
        name = f"further: {codes}"
        yield Row(name, path, (), AdmissionSettings(), [], b"null\n", asked, {"codes": codes})


def all_rows() -> list[Row]:
    """Those of the tables, and further ones."""
    return [*rows(), *further_rows()]


def batches() -> list[dict[Kind, list[Row]]]:
    """Rows by kind, those of one batch with the same policies for it; the first batch has most of them."""
    groups: dict[Kind, dict[str, list[Row]]] = {}
    for row in all_rows():
        kind = KINDS[row.path]
        groups.setdefault(kind, {}).setdefault(rendered(row.assignments, kind), []).append(row)
    columns = {
        kind: sorted(found.values(), key=len, reverse=True) for kind, found in groups.items()
    }
    most = max(map(len, columns.values()))
    return [
        {kind: found[number] for kind, found in columns.items() if number < len(found)}
        for number in range(most)
    ]


def cannot_be_asked(row: Row) -> str:
    """Why no API server can be asked a row; empty when one can."""
    if "errored" in row.expected:
        return "is no question of an API server"
    return "" if can_be_asked(row) else "is about what only an API server writes"


class Tally:
    """What became of the rows, and which rules showed themselves."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.problems: list[tuple[str, str, str]] = []
        self.policy_codes: set[str] = set()
        self.schema_codes: set[str] = set()


async def test_policies_say_what_the_rules_say(
    plane_api: Client, ensure_namespace: Callable[[str], None]
) -> None:
    tally = Tally()
    for batch in batches():
        settings = {kind: some[0].settings for kind, some in batch.items()}
        async with policed(plane_api, ensure_namespace, settings) as cluster:
            for some in batch.values():
                for row in some:
                    await _ask(row, cluster, tally)
    assert tally.problems == []
    left = tally.left.total()
    assert tally.asked.total() + left == len(all_rows())
    assert left < 100, tally.left
    assert tally.asked["refused by a policy"] > 200
    assert tally.asked["admitted"] > 300
    assert SCHEMA - tally.schema_codes == set()
    refusing = {rule.code for rule in catalogue.ALL if rule.level == "enforce"} - SCHEMA
    of_forms = {form.code for kind in ROOMS for form in forms_of(kind)}
    unseen = (refusing & of_forms) - tally.policy_codes
    assert not [
        code for code in unseen if not code.startswith("TPL-")
    ]  # which have their own tables


async def test_warnings_are_about_what_the_rules_warn_of(
    plane_api: Client, ensure_namespace: Callable[[str], None]
) -> None:
    """Rules that warn are made to refuse, so that what they find can be told from what they do not."""
    warning = sorted(
        {form.code for kind in ROOMS for form in forms_of(kind)}
        & {rule.code for rule in catalogue.ALL if rule.level == "warn"}
    )
    strict = tuple(f"rule.{code}=enforce" for code in warning)
    groups: dict[tuple[str, ...], dict[Kind, list[Row]]] = {}
    for row in rows():
        if "warnings" in row.expected and not any("rule." in each for each in row.assignments):
            settings = AdmissionSettings.from_assignments((*row.assignments, *strict))
            group = groups.setdefault(row.assignments, {})
            group.setdefault(KINDS[row.path], []).append(replace(row, settings=settings))
    tally = Tally()
    for group in groups.values():
        policies_of = {kind: some[0].settings for kind, some in group.items() if kind in ROOMS}
        async with policed(plane_api, ensure_namespace, policies_of) as cluster:
            for some in group.values():
                for row in some:
                    await _ask(row, cluster, tally)
    assert tally.problems == []
    assert set(warning) - tally.policy_codes == set()


async def test_pod_templates_are_judged_as_far_as_policies_go(
    plane_api: Client, ensure_namespace: Callable[[str], None]
) -> None:
    tally = Tally()
    settings = AdmissionSettings()
    async with policed(plane_api, ensure_namespace, {JOB: settings}) as cluster:
        for template in template_rows():
            if not template.settings:
                await _ask(_job_of(template), cluster, tally)
    assert tally.problems == []
    judged = {code for code in tally.policy_codes if code.startswith("TPL-")}
    assert judged == {form.code for form in forms_of(JOB) if form.code.startswith("TPL-")}


def _job_of(row: TemplateRow) -> Row:
    """A Job of one task with a template."""
    task = {"name": "t", "replicas": 1, "template": row.template}
    job = {"metadata": {"name": "t", "namespace": "default"}, "spec": {"tasks": [task]}}
    asked = request(_JOBS, job)
    return Row(row.name, _JOBS, (), AdmissionSettings(), [], b"null\n", asked, {})


async def _ask(row: Row, cluster: JudgedCluster, tally: Tally) -> None:
    """Ask a row and compare the answer."""
    if reason := cannot_be_asked(row):
        tally.left[reason] += 1
        return
    try:
        await cluster.become(row)
    except (Invalid, Forbidden):
        tally.left["no API server takes in what the row starts from"] += 1
        return
    if row.request["operation"] != "CREATE" and cluster.stored(row) is None:
        tally.left["the API server answers by itself that there is no such object"] += 1
        return
    wanted = expected(row, cluster)
    for attempt in range(PATIENCE):
        verdict = await cluster.ask(row)
        problem = _problem(row, wanted, verdict)
        if not problem:
            break
        await asyncio.sleep(0.02 * attempt)
    if problem:
        tally.problems.append((row.name, problem, str(verdict.error or "")))
    tally.asked[_word(verdict)] += 1
    if verdict.error is not None and not by_policy(verdict):
        tally.schema_codes.update(row.expected.get("codes", ()))
    tally.policy_codes.update(told(verdict))


def _word(verdict: Verdict) -> str:
    if verdict.error is None:
        return "admitted"
    return "refused by a policy" if by_policy(verdict) else "refused by the API server"


def _codes(causes: list[Raw]) -> set[str]:
    return {cause["message"].rpartition("[")[2].rstrip("]") for cause in causes}


def _problem(row: Row, wanted: Expected, verdict: Verdict) -> str:
    """How an answer differs from what it should be; empty when it does not."""
    kind = KINDS[row.path]
    if wanted.schema:
        right = verdict.error is not None and not by_policy(verdict)
        return "" if right else "the schema does not refuse it"
    found, covered = _codes(wanted.causes), {form.code for form in forms_of(kind)}
    if any(code.startswith("SCHEMA-") for code in found):
        return ""  # which the webhook cannot read, so that it looks no further
    for code in found - covered:
        assert left_out(code, kind), code
    if verdict.error is not None and not by_policy(verdict):
        # The API server has a rule of its own for it, or it is a pod, of which it knows more.
        fields = {cause["field"] for cause in verdict.error.causes}
        same = bool(fields & {cause["field"] for cause in wanted.causes})
        return "" if same or kind == POD else "the API server refuses it by itself"
    have, should = set(told(verdict)), found & covered
    if verdict.error is None:
        missing = {code for code in should if not _may_refuse("less", code)}
        return f"{sorted(missing)} should refuse it" if missing else _stored(kind, wanted, verdict)
    missing = {code for code in should - have if not _may_refuse("less", code)}
    more = {code for code in have - should if not _may_refuse("more", code)}
    return (
        f"{sorted(missing)} is not told, {sorted(more)} is" if missing or more or not have else ""
    )


def _may_refuse(how: str, code: str) -> bool:
    """Whether the form of a rule may differ from the rule in this way."""
    return code in PARTLY and PARTLY[code].refuses == how


def _stored(kind: Kind, wanted: Expected, verdict: Verdict) -> str:
    """How the stored object differs from what the webhook would have made of it."""
    if wanted.causes or not wanted.stored or kind == POD:
        return ""
    ours, theirs = (_seen(kind, found, wanted.writes) for found in (verdict.stored, wanted.stored))
    return "" if ours == theirs else f"stored is {ours}, should be {theirs}"


def _seen(kind: Kind, found: Raw, writes: list[Raw]) -> Raw:
    """The part of an object that defaults may be in, without those that are left to the webhook."""
    metadata = found.get("metadata", {})
    part: Raw = json.loads(
        json.dumps({"spec": found.get("spec"), "annotations": metadata.get("annotations") or {}})
    )
    for write in writes:
        segments = write["path"].split("/")[1:]
        pattern = "/".join("*" if each.isdigit() else each for each in ["", *segments])
        if any(pattern.startswith(each) for each in DEFAULTS_LEFT.get(kind, ())):
            _remove(part, segments)
    return part


def _remove(part: Raw, segments: list[str]) -> None:
    """Take away what stands at a JSON pointer, if anything does."""
    names = [each.replace("~1", "/").replace("~0", "~") for each in segments]
    here: Any = part
    for name in names[1:-1] if names[0] == "metadata" else names[:-1]:
        here = here[int(name)] if isinstance(here, list) else here.get(name, {})
    here.pop(names[-1], None)


def test_policies_that_warn_show_up_where_people_look(
    controlplane: Any, plane_api: Client, namespace: str
) -> None:
    """Not by exception: a warning in the terminal, and an object that is there."""
    del plane_api  # which has installed the CRDs
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "warned", "namespace": namespace},
        "spec": {"tasks": list(_tasks(2)), "minAvailable": 1},
    }
    objects = manifests_for_everybody()
    controlplane.kubectl("create", "-f", "-", stdin=objects)
    try:
        for _ in range(100):
            told_ = controlplane.kubectl(
                "create", "--dry-run=server", "-f", "-", stdin=json.dumps(job), check=False
            )
            if "Warning" in told_.stderr:
                break
        assert "[JOB-MINAVAIL-SUM]" in told_.stderr
        assert (
            "spec.minAvailable: is 1, while minAvailable of the tasks adds up to 2" in told_.stderr
        )
        assert "created" in told_.stdout
        many = {**job, "spec": {"tasks": list(_tasks(50)), "minAvailable": 50}}
        told_ = controlplane.kubectl("create", "-f", "-", stdin=json.dumps(many))
        assert told_.stderr == ""
        stored = json.loads(
            controlplane.kubectl("get", "vcjob", "warned", "-o", "json", namespace=namespace).stdout
        )
        assert [task["maxRetry"] for task in stored["spec"]["tasks"]] == [3] * 50
        bad = [{**task, "name": "same"} for task in _tasks(60)]
        job = {**job, "spec": {"tasks": bad}}
        told_ = controlplane.kubectl("create", "-f", "-", stdin=json.dumps(job), check=False)
        assert told_.stderr.count("[JOB-DUP-TASK]") > 10
        assert told_.stderr.rstrip().endswith(" …")  # as much as the API server passes on
    finally:
        controlplane.kubectl("delete", "-f", "-", stdin=objects)


def manifests_for_everybody() -> str:
    """The policies of Jobs as they are installed, whoever asks."""
    settings = AdmissionSettings()
    found = [
        each
        for each in (*mutations(settings), *policies(settings))
        if each["metadata"]["name"].startswith("pumice-jobs")
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": found})


def _tasks(count: int) -> Iterator[Raw]:
    """Tasks as people write them, each waiting for the one before it."""
    for number in range(count):
        container = {
            "name": "main",
            "image": "busybox",
            "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "env": [{"name": "RANK", "value": str(number)}],
        }
        spec = {
            "containers": [container],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "restartPolicy": "Never",
        }
        yield {
            "name": f"task{number}",
            "replicas": 1,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "template": {"spec": spec},
            **({"dependsOn": {"name": [f"task{number - 1}"]}} if number else {}),
        }
