"""Rows of every case table through the real kube-apiserver, which has the chart's policies and calls no webhook.

A row that breaks rules of which its kind's policies have one is refused with the code of such a rule; a row that
breaks none is admitted, and what is stored is what the webhook would have made of it. Which rules the policies have
their own messages say. Settings of admission have no effect on policies, so rows with settings that matter for these
rules are left out.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pumice.api.kinds import JOB, POD, POD_GROUP, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import Forbidden, Invalid
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.judged_cluster import JudgedCluster, Verdict
from tests.integration.webhook.policed_cluster import by_policy, policed, rendered, told
from tests.integration.webhook.test_table_controlplane import can_be_asked
from tests.integration.webhook.verdicts import Expected, expected
from tests.support.controlplane.cluster import ControlPlane
from tests.support.policies import LESS, MORE, covered
from tests.unit.webhook.reviewing import KINDS, Raw, Row, request, rows

COVERED = covered()
GATES = "scheduling-gates-queue-admission=true"
"""The one setting of admission that policies have."""

IRRELEVANT = (
    GATES,
    "enable-queue-allocated-pods-check=",
    "enable-root-queue-protection=",
    "max-queue-depth=",
    "rule.NOT-HERE-YET=",
)
"""How settings begin on which no rule that the policies have depends."""

PATIENCE = 20
"""Times that a row is asked while the API server may not know yet what its namespace says."""

DEFAULTS_LEFT: dict[Kind, tuple[str, ...]] = {
    JOB: ("/metadata/annotations/",),
    POD_GROUP: ("/spec/priorityClassName",),
}
"""Where defaults begin that the webhook alone writes."""


async def test_policies_say_what_the_rules_say_that_they_have(
    controlplane: ControlPlane, plane_api: Client, ensure_namespace: Callable[[str], None]
) -> None:
    asked: Counter[str] = Counter()
    left: Counter[str] = Counter()
    seen: set[str] = set()
    problems: list[tuple[str, str, str]] = []
    policies = rendered(controlplane, f"webhook.settings.{GATES}")
    async with policed(plane_api, ensure_namespace, policies) as cluster:
        for row in (*rows(), *further_rows()):
            reason, wanted, verdict = await _ask(row, cluster)
            if reason or wanted is None or verdict is None:
                left[reason] += 1
                continue
            if problem := _problem(row, wanted, verdict):
                problems.append((row.name, problem, str(verdict.error or "")))
            asked[_word(verdict)] += 1
            seen |= told(verdict)
    assert problems == []
    assert set().union(*COVERED.values()) - seen == set()
    assert asked["refused by a policy"] > 120, asked
    assert asked["admitted"] > 400, asked
    assert left.total() < 200, left


def further_rows() -> Iterator[Row]:
    """What the tables show only of objects that break other rules, too, or with settings."""
    parts = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 2}
    twice = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}
    jobs, queues = "/jobs/validate", "/queues/validate"
    for path, code, spec in (
        (
            jobs,
            "PART-MIN",
            {"tasks": [_task(0, replicas=8, minAvailable=3, partitionPolicy=parts)]},
        ),
        (jobs, "JOB-TOPO-BOTH", {"tasks": [_task(0)], "networkTopology": twice}),
        (jobs, "VOL-NONE", {"tasks": [_task(0)], "volumes": [{"mountPath": "/a"}]}),
        (jobs, "", {"tasks": [_task(number) for number in range(50)]}),
        (queues, "Q-SELF-PARENT", {"parent": "j"}),
    ):
        metadata = {"name": "j"} | ({"namespace": "default"} if path == jobs else {})
        asked = request(path, {"metadata": metadata, "spec": spec})
        row = {"codes": [code]} if code else {}
        yield Row(f"further: {code}", path, (), AdmissionSettings(), [], b"null\n", asked, row)


def _task(number: int, **fields: Any) -> Raw:
    """A task as people write it, that waits for the one before it."""
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "env": [{"name": "RANK", "value": str(number)}],
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    return {
        "name": f"task{number}",
        "replicas": 1,
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "template": {"spec": spec},
        **({"dependsOn": {"name": [f"task{number - 1}"]}} if number else {}),
        **fields,
    }


async def _ask(row: Row, cluster: JudgedCluster) -> tuple[str, Expected | None, Verdict | None]:
    """Ask a row: why it cannot be asked, or what must come out and what does."""
    if not all(each.startswith(IRRELEVANT) for each in row.assignments):
        return "has settings", None, None
    if not can_be_asked(row):
        return "is about what only an API server writes", None, None
    try:
        await cluster.become(row)
    except (Invalid, Forbidden):
        return "no API server takes in what the row starts from", None, None
    if row.request["operation"] != "CREATE" and cluster.stored(row) is None:
        return "there is no such object", None, None
    wanted = expected(row, cluster)
    verdict = await cluster.ask(row)
    for attempt in range(PATIENCE):
        if not _problem(row, wanted, verdict):
            break
        await asyncio.sleep(0.02 * attempt)
        verdict = await cluster.ask(row)
    return "", wanted, verdict


def _word(verdict: Verdict) -> str:
    if verdict.error is None:
        return "admitted"
    return "refused by a policy" if by_policy(verdict) else "refused by the API server"


def _problem(row: Row, wanted: Expected, verdict: Verdict) -> str:
    """How an answer differs from what it should be; empty when it does not."""
    kind = KINDS[row.path]
    if wanted.schema:
        right = verdict.error is not None and not by_policy(verdict)
        return "" if right else "the schema does not refuse it"
    found = {cause["message"].rpartition("[")[2].rstrip("]") for cause in wanted.causes}
    should = found & COVERED.get(kind.plural, set())
    if by_policy(verdict):
        have = told(verdict)
        return (
            ""
            if have and have <= should | MORE
            else f"{sorted(have)} is told, not {sorted(should)}"
        )
    if verdict.error is not None:
        # The API server has a rule of its own for it, or it is a pod, of which it knows more.
        fields = {cause["field"] for cause in verdict.error.causes}
        same = bool(fields & {cause["field"] for cause in wanted.causes})
        return "" if same or kind == POD else "the API server refuses it by itself"
    if should - LESS:
        return f"{sorted(should)} should refuse it"
    return _stored(kind, wanted, verdict)


def _stored(kind: Kind, wanted: Expected, verdict: Verdict) -> str:
    """How the stored object differs from what the webhook would have made of it."""
    if wanted.causes or not wanted.stored:
        return ""
    if kind == POD:
        gates = [each["value"] for each in wanted.writes if "schedulingGates" in each["path"]]
        return "" if all(_gated(verdict.stored, each) for each in gates) else "it has no gate"
    ours, theirs = (_seen(kind, found, wanted.writes) for found in (verdict.stored, wanted.stored))
    return "" if ours == theirs else f"stored is {ours}, should be {theirs}"


def _gated(pod: Raw, gate: Any) -> bool:
    found = pod["spec"].get("schedulingGates", [])
    return all(each in found for each in (gate if isinstance(gate, list) else [gate]))


def _seen(kind: Kind, found: Raw, writes: list[Raw]) -> Raw:
    """The part of an object that defaults may be in, without those that are left to the webhook."""
    metadata = found.get("metadata", {})
    part: Raw = json.loads(
        json.dumps({"spec": found.get("spec"), "annotations": metadata.get("annotations") or {}})
    )
    for write in writes:
        if write["path"].startswith(DEFAULTS_LEFT.get(kind, ())):
            _remove(part, write["path"].split("/")[1:])
    return part


def _remove(part: Raw, segments: list[str]) -> None:
    """Take away what stands at a JSON pointer, if anything does."""
    names = [each.replace("~1", "/").replace("~0", "~") for each in segments]
    here: Any = part
    for name in names[1:-1] if names[0] == "metadata" else names[:-1]:
        here = here[int(name)] if isinstance(here, list) else here.get(name, {})
    here.pop(names[-1], None)
