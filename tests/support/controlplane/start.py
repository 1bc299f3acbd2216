"""Start a real control plane on loopback: etcd, kube-apiserver, controller manager, and kwok's nodes."""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.kit.waiting import wait_until
from tests.support.controlplane import commands
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.pki import Authority, new_key, private_pem, public_pem
from tests.support.controlplane.processes import Process
from tests.support.ports import free_ports

HOSTS = ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"]
START_LIMIT = 120.0  # seconds; it takes about 4 on two idle cores
PREFIX = "pumice-controlplane-"


@contextlib.contextmanager
def started(binaries: Mapping[str, Path], *, kwok: bool = True) -> Iterator[ControlPlane]:
    """A control plane that is ready, and is gone with its folder afterwards.

    Args:
        binaries: Paths of the parts by name, as `Builder.ensure` gives them.
        kwok: Whether nodes become Ready and pods on them run; otherwise the status of both stays as it is written.

    Raises:
        NotReadyError: A part did not come up; the message holds the tail of its log.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder())
        client_port, peer_port, api_port = free_ports(3)
        authority = Authority()
        admin_token = secrets.token_hex(16)
        _write_secrets(folder, authority, admin_token)
        url = f"https://127.0.0.1:{api_port}"
        plane = ControlPlane(binaries, folder, url, authority, admin_token)
        stack.callback(plane.close)
        parts = plane.processes

        def launch(tool: str, arguments: Sequence[str]) -> None:
            process = Process(tool, [str(binaries[tool]), *arguments], folder)
            stack.callback(process.end)
            parts.append(process)

        launch("etcd", commands.etcd(folder, client_port, peer_port))
        launch("kube-apiserver", commands.apiserver(folder, api_port, client_port))
        wait_until(lambda: _answers(plane), "kube-apiserver to answer", START_LIMIT, parts)
        launch("kube-controller-manager", commands.controller_manager(folder))
        if kwok:
            launch("kwok", commands.kwok(folder))
        wait_until(plane.ready, "kube-apiserver to be ready", START_LIMIT, parts)
        account = "the controller manager to make the first service account"
        wait_until(lambda: plane.has_service_account("default"), account, START_LIMIT, parts)
        yield plane


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder, locked while it is in use; those left by killed runs go first."""
    base = Path(tempfile.gettempdir())
    for left_over in base.glob(f"{PREFIX}*/lock"):
        with contextlib.suppress(OSError), left_over.open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left_over.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / "new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "new").rename(folder / "lock")  # nobody sees it before it is held
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_secrets(folder: Path, authority: Authority, admin_token: str) -> None:
    """What the command lines name: certificates, service account keys, the administrator."""
    certificate, key = authority.server(HOSTS)
    account_key = new_key()
    contents = {
        "ca.crt": authority.certificate,
        "tls.crt": certificate,
        "tls.key": key,
        "sa.key": private_pem(account_key),
        "sa.pub": public_pem(account_key),
        "tokens.csv": f'{admin_token},admin,admin,"system:masters"\n'.encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def _answers(plane: ControlPlane) -> bool:
    try:
        return plane.request("GET", "/version")[0] == 200
    except OSError:
        return False
