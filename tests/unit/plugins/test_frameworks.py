"""What the framework plugins write into pods, row by row."""

from typing import Any

import pytest

from pumice.api.jobs import Job
from pumice.plugins import Raw
from tests.unit.plugins.support import containers, job_of, pod_of, rows, wired

ABSENT = object()


def job_of_row(row: Raw) -> Job:
    job = job_of(row["job"], {row["plugin"]: row.get("arguments", [])})
    for task in job.tasks:
        spec = task.pod_spec()
        if task.name in row.get("requests", {}):
            limits = {"limits": row["requests"][task.name]}
            spec["containers"] = [{"name": "c0", "resources": limits}]
        if task.name in row.get("env_of", {}):
            given = row["env_of"][task.name]
            spec["containers"] = [
                {
                    "name": name,
                    "env": [{"name": key, "value": value} for key, value in env.items()],
                }
                for name, env in ({"c0": {}} | given).items()
            ]
    return job


def pod_of_row(row: Raw) -> Raw:
    pod = pod_of(*row["pod"])
    for each in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        each.update(row.get("containers", {}).get(each["name"], {}))
    return pod


def env(container: Raw) -> list[str]:
    return [f"{each['name']}={each['value']}" for each in container.get("env", ())]


def ports(container: Raw) -> list[str]:
    return [
        f"{each['name']}:{each['containerPort']}" if "name" in each else str(each["containerPort"])
        for each in container.get("ports", ())
    ]


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
@pytest.mark.parametrize("row", rows("frameworks"))
def test_a_pod_is_wired_as_the_table_says(row: Raw, strict_upstream: bool) -> None:
    job, pod = job_of_row(row), pod_of_row(row)

    found = wired(job, pod, strict_upstream=strict_upstream)

    expected = row.get("upstream", row) if strict_upstream else row
    assert wired(job, found, strict_upstream=strict_upstream) == found
    if expected.get("unchanged"):
        assert found["spec"] == pod["spec"]
        assert "hccl/rankIndex" not in found["metadata"].get("annotations", {})
        return
    _assert_containers(expected, found)
    if "annotations" in expected:
        carried = found["metadata"]["annotations"]
        assert {key: carried.get(key) for key in expected["annotations"]} == expected["annotations"]
    if "wait" in expected:
        _assert_wait(expected["wait"], found, strict_upstream)


def _assert_containers(expected: Raw, pod: Raw) -> None:
    edited = containers(pod)
    regular = [each for each in pod["spec"]["containers"] if "c0" in edited]
    for container in regular:
        if "env" in expected:
            assert env(container) == expected["env"]
        for variable in expected.get("has", ()):
            assert variable in env(container)
    if "init_env" in expected:
        assert env(edited["i0"]) == expected["init_env"]
    for name, wanted in expected.get("ports", {}).items():
        assert ports(edited[name]) == wanted, name
    for field in ("command", "args"):
        for name, wanted in expected.get(field, {}).items():
            assert edited[name].get(field) == wanted
    if "init_containers" in expected:
        assert [each["name"] for each in pod["spec"]["initContainers"]] == expected[
            "init_containers"
        ]


def _assert_wait(wait: Raw, pod: Raw, strict_upstream: bool) -> None:
    step = containers(pod)[wait.get("name", "wait-for-master")]
    assert step["image"] == wait["image"]
    assert step["command"][:2] == ["sh", "-c"]
    script: Any = step["command"][2]
    assert f"port={wait['port']};" in script
    assert f"for host in {wait['hosts']}; do" in script
    assert f"gave up after {wait['timeout']} s" in script
    assert ("securityContext" in step, "resources" in step) == (
        (False, False) if strict_upstream and wait.get("name") is None else (True, True)
    )
