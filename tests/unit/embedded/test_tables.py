"""What kubectl prints: printer columns, JSONPath, ages."""

from typing import Any

import pytest

from pumice.api.durations import human_duration
from pumice.api.meta import format_time
from pumice.embedded.crds import resource_of
from pumice.embedded.printers import PRINTERS
from pumice.embedded.storage import Version
from pumice.embedded.tables import PathError, Tables, compile_path
from tests.unit.embedded.support import MOMENT, Clock, cases, pod, widgets


@pytest.mark.parametrize(("seconds", "text"), cases("ages"))
def test_ages(seconds: int, text: str) -> None:
    assert human_duration(seconds) == text


@pytest.mark.parametrize("row", cases("json-paths"), ids=lambda row: row["path"])
def test_json_paths(row: dict[str, Any]) -> None:
    assert compile_path(row["path"])(row["object"]) == row["found"]


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b)]", "..a", ".a b["])
def test_other_json_paths_are_refused(path: str) -> None:
    with pytest.raises(PathError):
        compile_path(path)


def cells(kind: str, obj: dict[str, Any], group: str = "") -> dict[str, Any]:
    return {column.name: cell(obj, MOMENT) for column, cell in PRINTERS[group, kind]}


def container(ready: bool, **state: Any) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": 1, "state": state}


@pytest.mark.parametrize(
    ("status", "marks", "shown"),
    [
        ({"phase": "Pending"}, {}, ("0/1", "Pending", "0")),
        (
            {"phase": "Running", "containerStatuses": [container(True, running={})]},
            {},
            ("1/1", "Running", "1"),
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [container(False, waiting={"reason": "CrashLoopBackOff"})],
            },
            {},
            ("0/1", "CrashLoopBackOff", "1"),
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [container(False, terminated={"exitCode": 3})],
            },
            {},
            ("0/1", "ExitCode:3", "1"),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, {}, ("0/1", "Evicted", "0")),
        ({"phase": "Running"}, {"deletionTimestamp": "x"}, ("0/1", "Terminating", "0")),
        ({"phase": "Succeeded"}, {"deletionTimestamp": "x"}, ("0/1", "Succeeded", "0")),
    ],
)
def test_pods_show_what_says_most(
    status: dict[str, Any], marks: dict[str, Any], shown: tuple[str, str, str]
) -> None:
    obj = pod() | {"status": status}
    obj["metadata"] |= {"creationTimestamp": format_time(MOMENT - 90), **marks}

    found = cells("pods", obj)

    assert (found["Ready"], found["Status"], found["Restarts"]) == shown
    assert (found["Age"], found["Node"], found["IP"]) == ("90s", "<none>", "<none>")


def test_gated_pods_say_so() -> None:
    gated = pod(schedulingGates=[{"name": "a/b"}], readinessGates=[{"conditionType": "x"}])
    gated["status"] = {"phase": "Pending", "conditions": [{"type": "x", "status": "True"}]}

    assert cells("pods", gated)["Status"] == "SchedulingGated"
    assert cells("pods", gated)["Readiness Gates"] == "1/1"


def test_nodes_show_readiness_roles_and_cordon() -> None:
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }

    found = cells("nodes", node)

    assert found["Status"] == "Ready,SchedulingDisabled"
    assert found["Roles"] == "control-plane"
    assert (found["Internal-IP"], found["External-IP"]) == ("10.0.0.1", "<none>")
    assert cells("nodes", {"metadata": {"name": "n"}})["Status"] == "Unknown"


def test_services_show_ports() -> None:
    ports = [{"port": 80, "nodePort": 30000, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    service = {
        "metadata": {"name": "s"},
        "spec": {
            "type": "NodePort",
            "clusterIP": "10.0.0.1",
            "ports": ports,
            "selector": {"a": "b"},
        },
    }

    found = cells("services", service)

    assert found["Port(s)"] == "80:30000/TCP,53/UDP"
    assert (found["Selector"], found["External-IP"]) == ("a=b", "<none>")


def test_events_show_when_and_what() -> None:
    event: dict[str, Any] = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "source": {"component": "scheduler", "host": "h"},
        "lastTimestamp": format_time(MOMENT - 5),
        "message": " said ",
        "count": 3,
    }

    found = cells("events", event)

    assert (found["Last Seen"], found["First Seen"]) == ("5s", "<unknown>")
    assert (found["Object"], found["Source"]) == ("pod/p", "scheduler, h")
    assert (found["Message"], found["Count"]) == ("said", "3")


def test_the_columns_of_a_crd_are_typed() -> None:
    columns: list[dict[str, Any]] = [
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
        {"name": "Number", "type": "integer", "jsonPath": ".spec.n"},
        {"name": "Ratio", "type": "number", "jsonPath": ".spec.r"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
        {"name": "List", "type": "string", "jsonPath": ".spec.list"},
        {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
        {"name": "Never", "type": "date", "jsonPath": ".spec.never"},
        {"name": "Odd", "type": "string", "jsonPath": ".spec["},
    ]
    [resource] = resource_of(widgets(additionalPrinterColumns=columns))
    obj: dict[str, Any] = {
        "metadata": {"name": "w"},
        "spec": {
            "n": 3,
            "r": 0.5,
            "on": False,
            "map": {"b": True, "a": 1},
            "list": [1, "x"],
            "since": format_time(MOMENT - 3600),
        },
    }

    table = Tables(Clock()).table(resource, [Version(obj, 1)], "None", headed=True)

    [row] = table["rows"]
    assert row["cells"] == ["w", None, 3, 0.5, False, "map[a:1 b:true]", "[1 x]", "60m", None, None]
    assert row["object"] is None
    headings = [column["name"] for column in table["columnDefinitions"]]
    assert headings == ["Name", *(column["name"] for column in columns)]
    assert table["columnDefinitions"][1]["priority"] == 1


def test_a_crd_without_columns_shows_the_age() -> None:
    [resource] = resource_of(widgets())
    obj = {"metadata": {"name": "w", "creationTimestamp": format_time(MOMENT - 1)}}

    table = Tables(Clock()).table(resource, [Version(obj, 1)], "Object", headed=False)

    assert table["rows"] == [{"cells": ["w", "1s"], "object": obj}]
    assert table["columnDefinitions"] == []


def test_values_of_another_type_are_left_out() -> None:
    columns: list[dict[str, Any]] = [
        {"name": "Number", "type": "integer", "jsonPath": ".spec.x"},
        {"name": "Ratio", "type": "number", "jsonPath": ".spec.x"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.x"},
        {"name": "Since", "type": "date", "jsonPath": ".spec.x"},
    ]
    [resource] = resource_of(widgets(additionalPrinterColumns=columns))
    obj = {"metadata": {"name": "w"}, "spec": {"x": "text"}}

    table = Tables(Clock()).table(resource, [Version(obj, 1)], "", headed=False)

    assert table["rows"][0]["cells"] == ["w", None, None, None, "<unknown>"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
