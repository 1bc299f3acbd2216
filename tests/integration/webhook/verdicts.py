"""What a real API server must make of a row, according to the pure rules, and what it makes of it.

The oracle does what the API server does around its webhooks, `pumice.webhook.offline` too: unknown fields go,
defaults come, a status is not written, keys are in order.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pumice.api.kinds import POD
from pumice.cluster.errors import Forbidden, Invalid
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.resource_group_file import parse
from pumice.webhook.schema_problems import schema
from pumice.webhook.view import Snapshot
from tests.integration.webhook.judged_cluster import JudgedCluster, Verdict, sent
from tests.unit.webhook.reviewing import KINDS, Raw, Row, answer, operations, request

PATIENCE = 40
"""Times that a row is asked while the webhook's caches may be behind."""


@dataclass(frozen=True)
class Expected:
    """What must come out.

    Attributes:
        schema: Whether the API server refuses it by itself.
        causes: Why the webhook refuses it.
        stored: The object as it is stored; empty on a deletion.
        writes: What the mutating webhook writes.
    """

    schema: bool
    causes: list[Raw]
    stored: Raw = field(default_factory=dict)
    writes: list[Raw] = field(default_factory=list)

    def is_met(self, row: Row, verdict: Verdict) -> bool:
        """Whether the API server says so, too."""
        if self.schema:
            return verdict.error is not None and not verdict.by_webhook
        if KINDS[row.path] == POD and verdict.error is not None and not verdict.by_webhook:
            return True  # no pod at all, whatever webhooks think of it
        if self.causes and verdict.error is not None:
            if verdict.by_webhook:
                return verdict.error.causes == self.causes
            # A rule of the API server's own says it of the same field, and says it first.
            return bool(_fields(verdict.error.causes) & _fields(self.causes))
        if self.causes or verdict.error is not None:
            return False
        if not self.stored:
            return True
        if KINDS[row.path] == POD:  # to which the API server has much to add
            return all(_holds(verdict.stored, _written(each)) for each in self.writes)
        return all(
            bool(_part(verdict.stored, *way) == _part(self.stored, *way))
            for way in (("spec",), ("metadata", "annotations"), ("metadata", "labels"))
        )

    def is_the_tables(self, row: Row, verdict: Verdict) -> bool:
        """Whether it is the row's own expectation, and the webhook's doing: what counts as a sample."""
        if verdict.error is not None and not verdict.by_webhook:
            return False
        codes = [cause["message"].rpartition("[")[2].rstrip("]") for cause in self.causes]
        return bool(list(dict.fromkeys(codes)) == row.expected.get("codes", []))


def expected(row: Row, cluster: JudgedCluster) -> Expected:
    """What the pure rules say, given what the API server holds."""
    kind, operation, old = KINDS[row.path], row.request["operation"], cluster.stored(row)
    groups, _ = parse(row.conf)
    admission = Admission(row.settings, Snapshot.of(cluster.objects()), builtin(), groups=groups)
    paths = {
        each.mutating: each.path
        for each in REGISTRATIONS
        if each.kind == kind and operation in each.operations
    }
    if operation == "DELETE":
        asked = request(paths[False], None, operation, old) | {"name": row.request["name"]}
        return Expected(False, _causes(answer(admission, paths[False], asked)))
    body = sent(row, row.request["object"])
    if kind.status:  # which is not written this way
        body.pop("status", None)
        body |= {"status": old["status"]} if old is not None and "status" in old else {}
    writes: list[Raw] = []
    if True in paths:
        response = answer(admission, paths[True], request(paths[True], body, operation, old))
        if not response["allowed"]:
            return Expected(False, _causes(response))
        writes = operations(response)
    found = judge(admission, body, operation, old)
    known = schema(kind)
    broken = any(each.path == "metadata.name" for each in found.errors if "SCHEMA" in each.code)
    broken = broken or bool(row.expected.get("by_schema"))  # CEL, and names of other kinds
    if broken or (known is not None and known.validate(found.patched)):
        return Expected(True, [])
    causes = []
    if False in paths:
        asked = request(paths[False], found.patched, operation, old)
        causes = _causes(answer(admission, paths[False], asked))
    return Expected(False, causes, found.patched, writes)


def _causes(response: Raw) -> list[Raw]:
    if response["allowed"]:
        return []
    found: list[Raw] = response["status"]["details"]["causes"]
    return found


def _fields(causes: list[Raw]) -> set[str]:
    return {cause["field"] for cause in causes}


def _part(obj: Raw, *way: str) -> Any:
    for key in way:
        obj = obj.get(key) or {}
    return obj


def _written(operation: Raw) -> Any:
    """The least object that an operation leaves behind."""
    found = operation["value"]
    for segment in reversed(operation["path"].split("/")[1:]):
        key = segment.replace("~1", "/").replace("~0", "~")
        found = [found] if key == "-" or key.isdigit() else {key: found}
    return found


def _holds(found: Any, wanted: Any) -> bool:
    """Whether all of a value is there, perhaps among more."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(_holds(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return all(any(_holds(each, item) for each in found) for item in wanted)
    return bool(found == wanted)


async def outcome(row: Row, cluster: JudgedCluster) -> tuple[Expected, Verdict] | None:
    """Ask a row until the answer is the expected one; None where there can be no such cluster."""
    try:
        await cluster.become(row)
    except (Invalid, Forbidden):
        return None
    if row.request["operation"] != "CREATE" and cluster.stored(row) is None:
        return None
    wanted = expected(row, cluster)
    verdict = await cluster.ask(row)
    for _ in range(PATIENCE):
        if wanted.is_met(row, verdict):
            break
        await asyncio.sleep(0.05)
        verdict = await cluster.ask(row)
    return wanted, verdict
