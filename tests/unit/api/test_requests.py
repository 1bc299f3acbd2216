"""What a pod asks for, counted as Kubernetes counts it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pumice.api.pods import PodSpec, PodStatus
from pumice.api.requests import pod_requests, quota_usage
from tests.kit.counting import calls
from tests.kit.tables import table


def spec(**fields: Any) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


def container(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}} | fields


def test_containers_add_up_and_a_pod_counts_one_pod() -> None:
    assert pod_requests(spec(containers=[container("1"), container("500m")])) == {
        "cpu": 1500,
        "pods": 1000,
    }


def test_the_largest_init_step_counts_when_it_exceeds_the_sum() -> None:
    wanted = spec(containers=[container("1")], initContainers=[container("3"), container("2")])
    assert pod_requests(wanted)["cpu"] == 3000


def test_a_restartable_init_container_runs_beside_everything_after_it() -> None:
    sidecar = container("1", restartPolicy="Always")
    wanted = spec(containers=[container("1")], initContainers=[sidecar, container("3")])
    assert pod_requests(wanted)["cpu"] == 4000
    wanted = spec(containers=[container("2")], initContainers=[container("1"), sidecar])
    assert pod_requests(wanted)["cpu"] == 3000


def test_overhead_adds_and_a_request_of_the_whole_pod_overrides() -> None:
    wanted = spec(containers=[container("1")], overhead={"cpu": "250m"})
    assert pod_requests(wanted)["cpu"] == 1250
    whole = spec(containers=[container("1")], resources={"requests": {"cpu": "4"}})
    assert pod_requests(whole)["cpu"] == 4000


def test_a_limit_without_a_request_counts_as_the_request() -> None:
    wanted = spec(containers=[{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2}}}])
    assert pod_requests(wanted) == {"nvidia.com/gpu": 2000, "pods": 1000}


def test_a_pod_without_requests_still_counts_one_pod() -> None:
    assert pod_requests(spec(containers=[{"name": "c"}])) == {"pods": 1000}


def test_quota_usage_names_requests_and_limits() -> None:
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    each = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    memory = 2000 * 2**20 * 1000
    assert quota_usage(spec(containers=[each, each])) == {
        "pods": 1000,
        "count/pods": 1000,
        "cpu": 2000,
        "requests.cpu": 2000,
        "limits.cpu": 2000,
        "memory": memory,
        "requests.memory": memory,
        "limits.memory": memory,
        "nvidia.com/gpu": 2000,
        "requests.nvidia.com/gpu": 2000,
    }


@pytest.mark.parametrize("case", table("scheduler/requests"), ids=lambda case: case["title"])
def test_a_pod_that_is_resized_in_place(case: dict[str, Any]) -> None:
    status = msgspec.convert(case["status"], PodStatus)
    assert pod_requests(spec(**case["spec"]), status) == case["counts"] | {"pods": 1000}


def sidecars(count: int) -> tuple[PodSpec, None]:
    each = [
        {
            "name": f"c{number}",
            "restartPolicy": "Always",
            "resources": {"requests": {f"example.com/r{number}": "1"}},
        }
        for number in range(count)
    ]
    return spec(initContainers=[*each, *({**one, "restartPolicy": ""} for one in each)]), None


def resized(count: int) -> tuple[PodSpec, PodStatus]:
    names = [f"c{number}" for number in range(count)]
    statuses = [{"name": name, "resources": {"requests": {"cpu": "2"}}} for name in names]
    conditions = [{"type": "PodResizePending", "reason": "Deferred"}] * count
    status = {"containerStatuses": statuses, "conditions": conditions}
    return spec(containers=[container("1", name=name) for name in names]), msgspec.convert(
        status, PodStatus
    )


@pytest.mark.parametrize("made", [sidecars, resized])
def test_twice_the_containers_take_twice_the_calls(made: Callable[[int], Any]) -> None:
    few, many = made(200), made(400)
    assert calls(lambda: pod_requests(*many)) < 2.2 * calls(lambda: pod_requests(*few))
