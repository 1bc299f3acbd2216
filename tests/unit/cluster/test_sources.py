"""Where the API server is looked for, in which order, and what is said when it is not found."""

from pathlib import Path

import pytest

from pumice.cluster.connection import ConfigurationError
from pumice.cluster.kubeconfig import find_connection, in_cluster

PLAIN = """
apiVersion: v1
kind: Config
current-context: main
contexts:
- {{name: main, context: {{cluster: c, namespace: team}}}}
clusters:
- {{name: c, cluster: {{server: "{server}/"}}}}
"""


def kubeconfig(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PLAIN.format(server=server))
    return path


@pytest.fixture
def pod(tmp_path: Path, ca_pem: bytes) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token")
    (folder / "namespace").write_text("pod-ns")
    (folder / "ca.crt").write_bytes(ca_pem)
    return folder


async def test_an_explicit_server_needs_nothing_else(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": str(tmp_path / "missing")}
    found = await find_connection(server="http://127.0.0.1:1/", environ=environ)
    assert found.server == "http://127.0.0.1:1"
    assert dict(await found.credentials.headers()) == {}


async def test_an_explicit_file_comes_before_the_environment(tmp_path: Path) -> None:
    mine = kubeconfig(tmp_path / "mine", "http://mine")
    other = kubeconfig(tmp_path / "other", "http://other")
    found = await find_connection(mine, environ={"KUBECONFIG": str(other)})
    assert (found.server, found.namespace) == ("http://mine", "team")


async def test_a_server_replaces_the_files_address(tmp_path: Path) -> None:
    found = await find_connection(
        kubeconfig(tmp_path / "f", "http://file"), "http://flag", environ={}
    )
    assert (found.server, found.namespace) == ("http://flag", "team")


async def test_the_variable_comes_before_the_pod(tmp_path: Path, pod: Path) -> None:
    file = kubeconfig(tmp_path / "f", "http://file")
    environ = {"KUBECONFIG": str(file), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert (await find_connection(environ=environ, service_account=pod)).server == "http://file"


async def test_the_pod_comes_before_the_home_folder(tmp_path: Path, pod: Path) -> None:
    kubeconfig(tmp_path / ".kube" / "config", "http://home")
    environ = {
        "HOME": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    found = await find_connection(environ=environ, service_account=pod)
    assert (found.server, found.namespace) == ("https://10.0.0.1:6443", "pod-ns")
    assert (await found.credentials.headers())["Authorization"] == "Bearer pod-token"
    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1


async def test_the_home_folder_comes_last(tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube" / "config", "http://home")
    assert (await find_connection(environ={"HOME": str(tmp_path)})).server == "http://home"


async def test_nothing_found_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="give --kubeconfig FILE"):
        await find_connection(environ={"HOME": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="give --kubeconfig FILE"):
        await find_connection(environ={"HOME": f"/{'x' * 300}"})


def test_ipv6_hosts_are_bracketed(pod: Path) -> None:
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}, pod)
    assert found.server == "https://[fd00::1]:443"


def test_a_pod_without_a_token_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="automountServiceAccountToken"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)


@pytest.mark.parametrize("comment", ["# Société".encode(), "# Société".encode("latin-1")])
def test_authorities_of_a_pod_may_have_comments_in_any_encoding(pod: Path, comment: bytes) -> None:
    authority = pod / "ca.crt"
    authority.write_bytes(comment + b"\n" + authority.read_bytes())
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod)
    assert found.tls is not None
    assert len(found.tls.get_ca_certs()) == 1


def test_a_pod_without_authorities_does_not_trust_those_of_the_system(pod: Path) -> None:
    (pod / "ca.crt").write_bytes(b"")
    with pytest.raises(ConfigurationError, match="the file of the certificate authority is empty"):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod)
