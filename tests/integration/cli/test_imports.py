"""What verbs import that ask an API server, in which a Job waits."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD_GROUP, QUEUE
from pumice.cluster.client import Client
from tests.integration.cli.servers import Server
from tests.kit.builders import job, pod_group, queue, task
from tests.kit.imported import check_imports, import_rows


async def fill(url: str) -> None:
    async with Client.connect(server=url) as client:
        await client.create(QUEUE, queue("default"))
        stored = await client.create(JOB, job("waits", [task("w", 2, cpu="3")]), "default")
        status = {"status": {"state": {"phase": "Pending"}}}
        await client.patch(JOB, "waits", "default", status, subresource="status")
        name = f"waits-{stored['metadata']['uid']}"
        await client.create(POD_GROUP, pod_group(name, 2, phase="Pending"), "default")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("4") as found:
        asyncio.run(fill(found.url))
        yield found


@pytest.mark.parametrize("row", import_rows(live=True), ids=lambda row: row["name"])
def test_a_verb_imports_what_it_needs(server: Server, row: dict[str, Any]) -> None:
    check_imports(row, "--master", server.url)
