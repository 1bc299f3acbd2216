"""Names that Kubernetes accepts, and those that Pumice derives."""

import pytest

from pumice.api import names


@pytest.mark.parametrize("name", ["a", "a-b", "0a", "a" * 63])
def test_dns_labels_are_accepted(name: str) -> None:
    assert names.dns_label_problem(name) is None


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n"])
def test_what_is_no_dns_label_is_explained(name: str) -> None:
    problem = names.dns_label_problem(name)
    assert problem is not None
    assert "must" in problem


def test_a_service_name_starts_with_a_letter() -> None:
    assert names.service_name_problem("a0") is None
    assert "start with a letter" in (names.service_name_problem("0a") or "")


@pytest.mark.parametrize("name", ["a.b-c.d", "a" * 253])
def test_dns_subdomains_are_accepted(name: str) -> None:
    assert names.dns_subdomain_problem(name) is None


@pytest.mark.parametrize("name", ["", "a..b", ".a", "A.b", "a" * 254])
def test_what_is_no_dns_subdomain_is_explained(name: str) -> None:
    assert names.dns_subdomain_problem(name) is not None


@pytest.mark.parametrize("name", ["a", "A_b.c", "example.com/Name", "a" * 63])
def test_qualified_names_are_accepted(name: str) -> None:
    assert names.qualified_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "/a", "a/", "a/b/c", "Ex.com/a", "-a", "a" * 64])
def test_what_is_no_qualified_name_is_explained(name: str) -> None:
    assert names.qualified_name_problem(name) is not None


def test_the_empty_text_is_a_label_value() -> None:
    assert names.label_value_problem("") is None
    assert names.label_value_problem("a b") is not None
    assert names.label_value_problem("a" * 64) is not None


@pytest.mark.parametrize(
    ("name", "index"),
    [("job1-task1-1", "1"), ("j-my-task-12", "12"), ("a-b", ""), ("x", "")],
)
def test_the_index_of_a_pod_is_the_last_of_three_parts(name: str, index: str) -> None:
    assert names.pod_index(name) == index


def test_derived_names() -> None:
    assert names.pod_name("job1", "task1", 1) == "job1-task1-1"
    assert names.pod_group_name("job1", "u") == "job1-u"
    assert names.hosts_config_map("j") == "j-svc"
    assert names.ssh_secret("j") == "j-ssh"
    assert names.address("j-w-0", "j") == "j-w-0.j"
    assert names.default_task_name(2) == "default2"
