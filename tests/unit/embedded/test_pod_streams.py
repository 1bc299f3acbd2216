"""What may be asked of a pod's containers, and how the rest is refused."""

from dataclasses import asdict
from typing import Any

import pytest

from pumice.embedded.pod_streams import command_request, log_request
from pumice.embedded.statuses import ApiStatusError
from tests.unit.embedded.support import cases

TABLE = cases("pod-streams")
DEFAULTS = {
    "previous": False,
    "follow": False,
    "timestamps": False,
    "tail": None,
    "since_seconds": None,
    "since_time": None,
    "limit": None,
}


def pod(case: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "initContainers": [{"name": "i"}],
        "containers": [{"name": each} for each in case["containers"]],
    }
    if case.get("node", True):
        spec["nodeName"] = "n"
    status = {"phase": case.get("phase", "Running")}
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec, "status": status}


LOGS, COMMANDS = TABLE["logs"], TABLE["commands"]


def those(rows: list[dict[str, Any]], *, refused: bool) -> pytest.MarkDecorator:
    found = [row for row in rows if ("refused" in row) is refused]
    return pytest.mark.parametrize("case", found, ids=lambda case: case["name"])


@those(LOGS, refused=False)
def test_logs_that_may_be_read(case: dict[str, Any]) -> None:
    found = log_request(pod(case), case["query"])
    asked = case["asked"]
    whole = asked and {"namespace": "default", "pod": "p", **DEFAULTS, **asked}
    assert (asdict(found) if found else None) == whole


@those(COMMANDS, refused=False)
def test_commands_that_may_be_run(case: dict[str, Any]) -> None:
    found = asdict(command_request(pod(case), case["query"], tuple(case["command"])))
    shown = found | {"command": list(found["command"]), "streams": sorted(found["streams"])}
    assert shown == {"namespace": "default", "pod": "p", "tty": False, **case["asked"]}


@those(LOGS, refused=True)
def test_logs_that_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ApiStatusError) as refused:
        log_request(pod(case), case["query"])
    assert (refused.value.code, refused.value.message) == (400, case["refused"])


@those(COMMANDS, refused=True)
def test_commands_that_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ApiStatusError) as refused:
        command_request(pod(case), case["query"], tuple(case["command"]))
    assert (refused.value.code, refused.value.message) == (400, case["refused"])
