"""What single pods come to on a node of processes, in both modes: a table of pods with what they print and how they end."""

import copy
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pumice.api import kinds
from tests.integration.embedded.node.conftest import MODES, LocalNode, local_node, own_folder
from tests.kit.tables import table

CASES = [
    pytest.param(name, case, id=f"{name}-{case['name']}")
    for name, mode in MODES.items()
    for case in table("embedded/process-pods")
    if case.get("full") in (None, mode.is_full)
]
ADDRESS = re.compile(r"10\.244\.0\.\d+")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[LocalNode]:
    """A node for all rows of a mode, since starting one takes longer than most of them."""
    with own_folder() as folder:
        async with local_node(MODES[request.param], folder) as node:
            yield node


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("shared", "case"), CASES, indirect=["shared"])
async def test_pods_end_as_the_table_says(shared: LocalNode, case: dict[str, Any]) -> None:
    node, case = shared, copy.deepcopy(case)
    node.lines.clear()
    node.create(*case.get("objects", ()))
    for volume in case["spec"].get("volumes", ()):
        if "hostPath" in volume:
            path = volume["hostPath"]["path"]
            volume["hostPath"]["path"] = path.format(
                data=node.machine.allowed[0], above=node.machine.allowed[1]
            )
    for each in [*case["spec"].get("initContainers", ()), *case["spec"]["containers"]]:
        each.setdefault("image", "any")
    node.run("p", case["spec"], **case.get("metadata", {}))
    try:
        await _assert_ends_as_said(node, case)
    finally:
        for each in case.get("objects", ()):
            kind = kinds.of_object(each)
            assert kind is not None
            node.cluster.store.delete(kind, each["metadata"]["name"], "default")
        node.cluster.store.delete(kinds.POD, "p", "default", grace=0)


async def _assert_ends_as_said(node: LocalNode, case: dict[str, Any]) -> None:
    phase = await node.phase("p", "Succeeded", "Failed")
    status = node.status("p")
    assert phase == case.get("phase", "Succeeded"), (status, node.log("p"))
    if "log" in case:
        assert [ADDRESS.sub("ADDRESS", line) for line in node.log("p")] == case["log"]
    for field in ("message", "reason"):
        if field in case:
            assert status[field] == case[field]
    if "terminated" in case:
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert {key: ended.get(key) for key in case["terminated"]} == case["terminated"]
    if "restarts" in case:
        assert status["containerStatuses"][0]["restartCount"] == case["restarts"]
    if "absent" in case:
        assert not _exists(case["absent"])


def _exists(path: str) -> bool:
    return Path(path).exists()
