"""Manifests in the wild's shapes, sent to the real kube-apiserver: it stores what `pumice lint` says it would.

`tests/unit/cli/test_wild.py` lints them.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pumice.api.documents import parse
from pumice.api.kinds import QUEUE, SERVICE_ACCOUNT, of_object
from pumice.cluster.client import Client
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.judged_cluster import judging
from tests.integration.webhook.verdicts import outcome
from tests.kit import tables
from tests.unit.webhook.reviewing import Raw, Row, request

WILD = tables.CASES / "wild"
PATHS = {each.kind: each.path for each in REGISTRATIONS if not each.mutating}
WRITTEN_BY_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "uid")
NO_GROUPS = b"null\n"


def objects(file: Path) -> list[Raw]:
    """The objects of a file, Lists taken apart."""
    documents: list[Any] = [value for _, _, value in parse(file.read_bytes())]
    return [each for value in documents for each in value.get("items", [value])]


def wild_rows() -> Iterator[Row]:
    """A row for every manifest of a kind that admission judges; what they lack to be told apart is given."""
    state = objects(WILD / "state.yaml")
    for file in sorted(WILD.glob("*/*.yaml")):
        found = objects(file)
        for manifest in found:
            kind = of_object(manifest)
            if kind not in PATHS:
                continue
            given = manifest["metadata"]
            metadata = {key: given[key] for key in given if key not in WRITTEN_BY_THE_SERVER}
            metadata.setdefault("name", given.get("generateName", "") + "x")
            metadata.pop("generateName", None)
            asked = request(PATHS[kind], manifest | {"metadata": metadata})
            if kind.namespaced:
                asked["namespace"] = asked["namespace"] or "default"
            others = [each for each in found if of_object(each) == QUEUE and each is not manifest]
            name = f"{file.parent.name}/{file.name}: {kind.kind} {metadata['name']}"
            settings = AdmissionSettings()
            yield Row(name, PATHS[kind], (), settings, [*state, *others], NO_GROUPS, asked, {})


async def test_the_api_server_stores_what_lint_says(
    plane_api: Client, ensure_namespace: Callable[[str], None], namespace: str
) -> None:
    asked = 0
    await asyncio.to_thread(ensure_namespace, "analytics")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "spark"}}
    await plane_api.create(SERVICE_ACCOUNT, account, "analytics")  # which a Spark driver runs as
    async with judging(plane_api, ensure_namespace, namespace, (), NO_GROUPS) as cluster:
        for row in wild_rows():
            result = await outcome(row, cluster)
            assert result is not None, row.name
            wanted, verdict = result
            assert verdict.error is None, (row.name, verdict.error)
            assert wanted.is_met(row, verdict), (row.name, wanted, verdict)
            asked += 1
    assert asked >= 50
