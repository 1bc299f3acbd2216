"""Every framework's example on a real API server: admitted, wired as `pumice render` says, and running."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from pumice.plugins import builtin
from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

EXAMPLES = Path(__file__).parents[2] / "examples"
FRAMEWORKS = ("tensorflow", "pytorch", "mpi", "mxnet", "ray", "hcclrank", "roles")
PATHS = {
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps/{name}",
    "Service": "/api/v1/namespaces/{namespace}/services/{name}",
    "Secret": "/api/v1/namespaces/{namespace}/secrets/{name}",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{name}",
    "Pod": "/api/v1/namespaces/{namespace}/pods/{name}",
    "Job": "/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}",
}
GROWING = ("volumes", "volumeMounts")
"""Lists that Kubernetes appends a token to."""

pytestmark = pytest.mark.usefixtures("installation", "nodes")


@pytest.fixture
def nodes(add_node: Callable[..., str]) -> None:
    """Two nodes with accelerators for everybody."""
    for name in ("left", "right"):
        accelerators = {"nvidia.com/gpu": "16", "huawei.com/Ascend910": "32"}
        add_node(name, "32", "256Gi", extended=accelerators)


class Stack:
    """The test's namespace on the control plane."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """A live object; empty when there is none."""
        path = PATHS[kind].format(namespace=self.namespace, name=name)
        status, found = self.plane.request("GET", path)
        assert status in (200, 404), found
        return dict(found) if status == 200 else {}

    def runs(self, pod: str) -> bool:
        """Whether a pod is on a node and has started."""
        found = self.get("Pod", pod)
        bound = bool(found.get("spec", {}).get("nodeName"))
        return bound and found["status"].get("phase") == "Running"


@pytest.fixture
def stack(controlplane: ControlPlane, namespace: str) -> Stack:
    return Stack(controlplane, namespace)


def lasting(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with pods that do not end: what a completed Job no longer needs is removed."""
    for task in manifest["spec"]["tasks"]:
        annotations = task["template"].get("metadata", {}).get("annotations", {})
        annotations.pop("pumice.dev/run-duration", None)
    return manifest


def rendered(job: dict[str, Any], file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What `pumice render` makes of a Job, by kind and name."""
    file.write_text(json.dumps(job))
    ran = subprocess.run(
        [sys.executable, "-m", "pumice", "render", file, "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
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
    stack: Stack, tmp_path: Path, name: str
) -> None:
    manifest = lasting(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))
    text = yaml.safe_dump(manifest)
    applied = stack.plane.kubectl("apply", "-f", "-", stdin=text, namespace=stack.namespace)
    assert "Warning" not in applied.stderr
    live = stack.get("Job", manifest["metadata"]["name"])
    here = {"namespace": stack.namespace, "uid": live["metadata"]["uid"]}
    wanted = rendered({**manifest, "metadata": manifest["metadata"] | here}, tmp_path / "job.json")

    pods = [pod for kind, pod in wanted if kind == "Pod"]
    assert len(pods) == sum(task["replicas"] for task in manifest["spec"]["tasks"])
    wait_until(lambda: all(map(stack.runs, pods)), f"{pods} run", 60)

    differing: list[str] = []
    for (kind, made), each in wanted.items():
        if kind not in PATHS or kind == "Job":
            continue
        found = stack.get(kind, made)
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
        used |= set(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())["spec"]["plugins"])
    assert used == set(builtin().names)
