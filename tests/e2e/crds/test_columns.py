"""What `kubectl get` shows of each kind."""

from __future__ import annotations

import json

from pumice.api.kinds import HYPER_NODE, QUEUE
from tests.e2e.crds.objects import EXACT, LABELS, REGEX, TASK, create, cron_job, hyper_node, job
from tests.support.controlplane.cluster import ControlPlane


def columns(plane: ControlPlane, namespace: str, *arguments: str) -> dict[str, str]:
    """The only row of `kubectl get`, by the names in its header."""
    header, row = plane.kubectl("get", *arguments, namespace=namespace).stdout.splitlines()
    starts = [header.index(name) for name in header.split()]
    ends = [*starts[1:], None]
    return {
        header[start:end].strip(): row[start:end].strip()
        for start, end in zip(starts, ends, strict=True)
    }


def test_kubectl_get_shows_where_a_job_stands(controlplane: ControlPlane, namespace: str) -> None:
    job(controlplane, namespace, minAvailable=2)
    status = {
        "state": {"phase": "Pending", "message": "waits for memory"},
        "minAvailable": 2,
        "running": 0,
    }
    patch = json.dumps({"status": status})
    controlplane.kubectl(
        *("patch", "vcjob", "it", "--subresource=status", "--type=merge", "-p", patch),
        namespace=namespace,
    )
    narrow = columns(controlplane, namespace, "vcjob", "it")
    assert list(narrow) == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    wide = columns(controlplane, namespace, "vcjob", "it", "-o", "wide")
    shown = ("Pending", "2", "0", "default", "waits for memory")
    assert tuple(
        wide[name] for name in ("STATUS", "MINAVAILABLE", "RUNNINGS", "QUEUE", "REASON")
    ) == (shown)


def test_kubectl_get_shows_where_a_podgroup_stands(
    controlplane: ControlPlane, namespace: str
) -> None:
    condition = {"type": "Unschedulable", "status": "True", "message": "2 of 4 nodes too small"}
    status = {"phase": "Pending", "running": 0, "conditions": [condition]}
    create(controlplane, namespace, "PodGroup", {"minMember": 3}, status=status)
    wide = columns(controlplane, namespace, "pg", "it", "-o", "wide")
    assert (wide["STATUS"], wide["MINMEMBER"], wide["REASON"]) == (
        "Pending",
        "3",
        "2 of 4 nodes too small",
    )


def test_kubectl_get_shows_a_queue(controlplane: ControlPlane, namespace: str) -> None:
    create(controlplane, namespace, "Queue", {"weight": 4, "parent": "root"})
    wide = columns(controlplane, namespace, "q", namespace, "-o", "wide")
    controlplane.request("DELETE", QUEUE.path(namespace))
    assert (wide["PARENT"], wide["WEIGHT"]) == ("root", "4")


def test_kubectl_get_shows_a_cronjob(controlplane: ControlPlane, namespace: str) -> None:
    cron_job(controlplane, namespace, timeZone="Europe/Oslo")
    status = json.dumps({"status": {"lastScheduleTime": "2026-01-02T03:04:05Z"}})
    controlplane.kubectl(
        *("patch", "cronvj", "it", "--subresource=status", "--type=merge", "-p", status),
        namespace=namespace,
    )
    wide = columns(controlplane, namespace, "cronvcjob", "it", "-o", "wide")
    shown = {name: wide[name] for name in ("SCHEDULE", "TIMEZONE", "SUSPEND", "CONCURRENCY")}
    assert shown == {
        "SCHEDULE": "@daily",
        "TIMEZONE": "Europe/Oslo",
        "SUSPEND": "false",
        "CONCURRENCY": "Allow",
    }
    assert wide["LAST-SCHEDULE"].endswith("d")


def test_kubectl_get_shows_a_jobtemplate(controlplane: ControlPlane, namespace: str) -> None:
    create(controlplane, namespace, "JobTemplate", {"tasks": [TASK], "minAvailable": 2})
    shown = columns(controlplane, namespace, "jt", "it")
    assert (shown["MINAVAILABLE"], shown["QUEUE"]) == ("2", "default")


def test_kubectl_get_shows_a_jobflow(controlplane: ControlPlane, namespace: str) -> None:
    create(controlplane, namespace, "JobFlow", {"flows": [{"name": "prepare"}]})
    found = controlplane.kubectl("get", "jf", "it", namespace=namespace).stdout
    assert found.split()[:3] == ["NAME", "STATUS", "AGE"]


def test_kubectl_get_shows_a_hypernode(controlplane: ControlPlane, namespace: str) -> None:
    selectors = (EXACT, REGEX, LABELS)
    members = [{"type": "Node", "selector": each} for each in selectors]
    status, made = hyper_node(controlplane, namespace, tierName="rack", members=members)
    assert status == 201, made
    assert made["spec"]["members"] == members
    shown = columns(controlplane, namespace, "hn", namespace)
    controlplane.request("DELETE", HYPER_NODE.path(namespace))
    assert (shown["TIER"], shown["TIERNAME"], shown["NODECOUNT"]) == ("1", "rack", "")
