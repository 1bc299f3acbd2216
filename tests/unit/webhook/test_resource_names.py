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
        ("gpu", 'or VENDOR/NAME (did you mean "amd.com/gpu" or "nvidia.com/gpu"?)'),
        ("ascend910", '(did you mean "huawei.com/Ascend910"?)'),
        ("pods", "must be a standard resource for containers (cpu, memory, "),
        ("hugepages-", "must be a standard resource for containers (cpu, memory, "),
        ("hugepages-big", "must be a standard resource for containers (cpu, memory, "),
        ("hugepages-500m", "must be a standard resource for containers (cpu, memory, "),
        ("hugepages--2Mi", "must be a standard resource for containers (cpu, memory, "),
        ("Example.com/gpu", "invalid prefix: a lowercase RFC 1123 subdomain must"),
        ("requests.example.com/gpu", '"requests." is a prefix for quotas'),
        ("a" * 245 + "/gpu", "with the prefix of quotas"),
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
