"""What single pods come to on a node of processes, in both modes: a table of pods with what they print and how they end."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.integration.embedded.node.conftest import MODES, LocalNode, mode_mark
from tests.kit.tables import table

CASES = [
    pytest.param(name, case, id=f"{name}-{case['name']}", marks=mode_mark(name))
    for name, mode in MODES.items()
    for case in table("embedded/process-pods")
    if case.get("full") in (None, mode.is_full)
]


@pytest.mark.parametrize(("mode", "case"), CASES, indirect=["mode"])
async def test_pods_end_as_the_table_says(node: LocalNode, case: dict[str, Any]) -> None:
    case = copy.deepcopy(case)
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
    phase = await node.phase("p", "Succeeded", "Failed")
    status = node.status("p")
    assert phase == case.get("phase", "Succeeded"), (status, node.log("p"))
    if "log" in case:
        assert node.log("p") == case["log"]
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
