"""Names of resources: what containers and pods may ask for."""

import pytest

from pumice.webhook.rules import resource_names


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "hugepages-2Mi",
        "hugepages-1e9",
        "nvidia.com/gpu",
        "count/things",
        "example.kubernetes.io/thing",
        "a" * 244 + "/gpu",
    ],
)
def test_what_containers_may_ask_for(name: str) -> None:
    assert resource_names.container_resource_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("memroy", 'did you mean "memory"?'),
        ("gpu", 'containers (did you mean "amd.com/gpu" or "nvidia.com/gpu"?): these are cpu'),
        ("ascend910", '(did you mean "huawei.com/Ascend910"?)'),
        ("pods", "is no resource of containers"),
        ("hugepages-", "is no resource of containers"),
        ("hugepages-big", "is no resource of containers"),
        ("hugepages-500m", "is no resource of containers"),
        ("hugepages--2Mi", "is no resource of containers"),
        ("Example.com/gpu", "has a prefix that must"),
        ("requests.example.com/gpu", 'must not start with "requests."'),
        ("a" * 245 + "/gpu", "with the 9 characters that quotas put before it"),
    ],
)
def test_what_containers_may_not_ask_for_is_explained(name: str, problem: str) -> None:
    assert problem in (resource_names.container_resource_problem(name) or "")


def test_pods_as_a_whole_ask_for_less() -> None:
    for name in ("cpu", "memory", "hugepages-1Gi"):
        assert resource_names.pod_resource_problem(name) is None
    for name in ("ephemeral-storage", "nvidia.com/gpu", "hugepages-x"):
        assert resource_names.pod_resource_problem(name) is not None
    assert 'did you mean "cpu"?' in (resource_names.pod_resource_problem("cpus") or "")


def test_a_device_without_its_vendor_is_no_misspelt_cpu() -> None:
    for told in (
        resource_names.hint("gpu"),
        resource_names.container_resource_problem("gpu") or "",
    ):
        assert '(did you mean "amd.com/gpu" or "nvidia.com/gpu"?)' in told


def test_the_name_of_huge_pages_says_how_large_they_are() -> None:
    assert resource_names.page_size("hugepages-2Mi") == 2 * 2**20
    assert resource_names.page_size("hugepages-0") == 0
    assert resource_names.page_size("hugepages-0.5") == 0
    assert resource_names.page_size("hugepages-x") == 0


def test_limits_may_exceed_requests_only_for_what_is_shared() -> None:
    assert resource_names.is_shared("cpu")
    assert resource_names.is_shared("example.kubernetes.io/thing")
    assert not resource_names.is_shared("hugepages-2Mi")
    assert not resource_names.is_shared("nvidia.com/gpu")
