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


@pytest.mark.parametrize("name", ["A", "a.b-c", "0", "a b", "~!", ".."])
def test_environment_variables_are_named_with_printable_ascii(name: str) -> None:
    assert names.env_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "A=B", "GRÖSSE", "A\n", "\x7f"])
def test_what_names_no_environment_variable_is_explained(name: str) -> None:
    assert "printable ASCII" in (names.env_name_problem(name) or "")


@pytest.mark.parametrize("name", ["http", "a", "8080-tcp", "a-1-b", "a" * 15])
def test_ports_are_named_as_services_of_the_internet(name: str) -> None:
    assert names.port_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "80", "8-0", "A", "a--b", "-a", "a-", "a_b", "a\n", "a" * 16])
def test_what_names_no_port_is_explained(name: str) -> None:
    assert "must" in (names.port_name_problem(name) or "")


@pytest.mark.parametrize("key", ["a", ".a", "A_b-c.d", "a" * 253])
def test_keys_of_config_maps_are_accepted(key: str) -> None:
    assert names.config_key_problem(key) is None


@pytest.mark.parametrize("key", ["", ".", "..", "..a", "a/b", "a b", "a" * 254])
def test_what_is_no_key_of_a_config_map_is_explained(key: str) -> None:
    assert "must" in (names.config_key_problem(key) or "")


def test_a_header_has_letters_digits_and_hyphens() -> None:
    assert names.header_name_problem("X-Probe-1") is None
    assert 'found "X_Probe"' in (names.header_name_problem("X_Probe") or "")
    assert names.header_name_problem("") is not None
