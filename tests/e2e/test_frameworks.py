"""Every framework's example on a real API server: admitted, wired as `pumice render` says, and running."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from pumice.api.kinds import CONFIG_MAP, JOB, NETWORK_POLICY, POD, SECRET, SERVICE
from pumice.plugins import builtin
from tests.kit.namespaces import Namespace, example
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.forked import run

FRAMEWORKS = ("tensorflow", "pytorch", "mpi", "mxnet", "ray", "hcclrank", "roles")
KINDS = {kind.kind: kind for kind in (CONFIG_MAP, SERVICE, SECRET, NETWORK_POLICY, POD)}
GROWING = ("volumes", "volumeMounts")
"""Lists that Kubernetes appends a token to."""

Raw = dict[str, Any]

pytestmark = pytest.mark.usefixtures("installation", "nodes")


@pytest.fixture
def nodes(add_node: Callable[..., str]) -> None:
    """Two nodes with accelerators for everybody."""
    for name in ("left", "right"):
        accelerators = {"nvidia.com/gpu": "16", "huawei.com/Ascend910": "32"}
        add_node(name, "32", "256Gi", extended=accelerators)


@pytest.fixture
def cluster(controlplane: ControlPlane, namespace: str) -> Namespace:
    return Namespace(controlplane, namespace)


def runs(pod: Raw) -> bool:
    """Whether a pod is on a node and has started."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") == "Running"


def lasting(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with pods that do not end: what a completed Job no longer needs is removed."""
    for task in manifest["spec"]["tasks"]:
        annotations = task["template"].get("metadata", {}).get("annotations", {})
        annotations.pop("pumice.dev/run-duration", None)
    return manifest


def rendered(job: dict[str, Any], file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What `pumice render` makes of a Job, by kind and name."""
    file.write_text(json.dumps(job))
    ran = run("render", str(file), "-o", "json")
    assert ran.returncode == 0, ran.stderr
    return {
        (each["kind"], each["metadata"]["name"]): each for each in json.loads(ran.stdout)["items"]
    }


def differences(wanted: Any, found: Any, path: str) -> list[str]:
    """Where something live is not what was rendered; fields that the API server adds do not count."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [
            each
            for key, value in wanted.items()
            for each in differences(value, found.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(found, list):
        may_grow = path.rpartition(".")[2] in GROWING
        if len(wanted) == len(found) or (may_grow and len(wanted) < len(found)):
            return [
                each
                for position, value in enumerate(wanted)
                for each in differences(value, found[position], f"{path}[{position}]")
            ]
    return [] if wanted == found else [f"{path}: {wanted!r} was rendered, {found!r} is there"]


def decoded(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


def assert_keys_belong_together(secret: dict[str, Any]) -> None:
    """The private key is whole, and its public one is what lets the other pods in."""
    data = decoded(secret)
    private = load_pem_private_key(data["id_rsa"], password=None)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert data["authorized_keys"].split()[:2] == public.split()[:2]
    assert data["id_rsa.pub"].split()[:2] == public.split()[:2]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_frameworks_example_runs_and_is_wired_as_it_is_rendered(
    cluster: Namespace, tmp_path: Path, name: str
) -> None:
    manifest = lasting(example(f"{name}.yaml"))
    assert "Warning" not in cluster.apply(manifest)
    live = cluster.get(JOB, manifest["metadata"]["name"])
    here = {"namespace": cluster.name, "uid": live["metadata"]["uid"]}
    wanted = rendered({**manifest, "metadata": manifest["metadata"] | here}, tmp_path / "job.json")

    pods = [pod for kind, pod in wanted if kind == "Pod"]
    assert len(pods) == sum(task["replicas"] for task in manifest["spec"]["tasks"])
    wait_until(lambda: len([*filter(runs, cluster.all(POD))]) == len(pods), f"{pods} run", 60)
    assert sorted(cluster.pods()) == sorted(pods)

    differing: list[str] = []
    for (kind, made), each in wanted.items():
        if kind not in KINDS:
            continue
        found = cluster.find(KINDS[kind], made)
        if kind == "Secret":
            assert set(each["data"]) == set(found["data"])
            assert_keys_belong_together(found)
            continue
        for part in ("spec", "data"):
            differing += differences(
                each.get(part, {}), found.get(part, {}), f"{kind} {made}.{part}"
            )
        for part in ("labels", "annotations"):
            expected = each["metadata"].get(part, {})
            there = found["metadata"].get(part, {})
            differing += differences(expected, there, f"{kind} {made}.{part}")
    assert differing == []


def test_every_plugin_is_in_an_example() -> None:
    used = {"svc", "ssh"}  # required by the others
    for name in FRAMEWORKS:
        used |= set(example(f"{name}.yaml")["spec"]["plugins"])
    assert used == set(builtin().names)
