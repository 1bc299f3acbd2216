"""A release with a certificate from files, which another tool renews, installed on a real API server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.users import Users, trusted
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import NAMESPACE, Installation, installed

pytestmark = pytest.mark.controlplane

SECRET = "admission-tls"
NEW_KEY = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")


def authority(folder: Path) -> None:
    """`ca.crt` and `ca.key`, as docs/operations.md has them made."""
    files = ("-keyout", "ca.key", "-out", "ca.crt")
    subprocess.run(
        [*NEW_KEY, "-subj", "/CN=admission authority", *files],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def certificate(folder: Path) -> None:
    """`tls.crt` and `tls.key`, signed by the authority, for where the webhook of tests listens."""
    more = ("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE")
    files = ("-CA", "ca.crt", "-CAkey", "ca.key", "-keyout", "tls.key", "-out", "tls.crt")
    subprocess.run(
        [*NEW_KEY, "-subj", "/CN=pumice-webhook", *more, *files],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def installation(
    controlplane: ControlPlane, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Pumice, installed from its chart, beside a Secret that was there before it."""
    authority(folder)
    certificate(folder)
    controlplane.remove_namespace(NAMESPACE)
    controlplane.add_namespace(NAMESPACE)
    pair = (f"--cert={folder}/tls.crt", f"--key={folder}/tls.key")
    controlplane.kubectl("create", "secret", "tls", SECRET, *pair, namespace=NAMESPACE)
    mode = "webhook.certificates.mode=files"
    settings = ("--set", mode, "--set", f"webhook.certificates.secretName={SECRET}")
    bundle = ("--set-file", f"webhook.certificates.caBundle={folder}/ca.crt")
    home = tmp_path_factory.mktemp("pumice")
    with installed(controlplane, home, *settings, *bundle, forked=True) as here:
        yield here


def test_it_admits_jobs_and_makes_no_secret(controlplane: ControlPlane, users: Users) -> None:
    with users.busy():
        pass
    users.noticed_nothing()
    assert users.undefaulted == 0
    assert trusted(controlplane)
    found = controlplane.kubectl("get", "secrets", "-o", "name", namespace=NAMESPACE).stdout
    assert [each for each in found.split() if "helm.release" not in each] == [f"secret/{SECRET}"]


def test_another_certificate_of_the_same_authority_is_served_after_a_restart(
    controlplane: ControlPlane, users: Users, installation: Installation, folder: Path
) -> None:
    certificate(folder)
    pair = (f"--cert={folder}/tls.crt", f"--key={folder}/tls.key")
    controlplane.kubectl("delete", "secret", SECRET, namespace=NAMESPACE)
    controlplane.kubectl("create", "secret", "tls", SECRET, *pair, namespace=NAMESPACE)
    installation.restart("webhook")
    wait_until(users.defaulted, "a Job to be admitted", 60)
