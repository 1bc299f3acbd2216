"""A running control plane and the ways to talk to it: kubectl, helm, users, namespaces, nodes; and requests."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pumice.api.kinds import (
    CRON_JOB,
    INDEXED_JOB,
    JOB,
    JOB_FLOW,
    JOB_SET,
    LEADER_WORKER_SET,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from tests.kit.waiting import wait_until
from tests.support.controlplane.api_server import ApiServer
from tests.support.controlplane.pki import Authority
from tests.support.controlplane.processes import Process

Completed = subprocess.CompletedProcess[str]
ONE_SHOT = {"GOGC": "400", "GOMAXPROCS": "1"}
"""Environment of kubectl and helm, which end before they have much to collect; a second thread costs them a fifth of their processor time."""

MAKING_PODS = (
    CRON_JOB,
    JOB_FLOW,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    Kind("batch", "v1", "CronJob", "cronjobs"),
    INDEXED_JOB,
    Kind("apps", "v1", "Deployment", "deployments"),
    STATEFUL_SET,
    REPLICA_SET,
    POD_GROUP,
    POD,
    PERSISTENT_VOLUME_CLAIM,
)
"""Kinds whose objects concern other namespaces: they make pods, or decide where pods run. Owners are first."""


class ControlPlane(ApiServer):
    """A control plane on loopback, started by `tests.support.controlplane.start`.

    Attributes:
        kubeconfig: Path of a kubeconfig of an administrator (group system:masters).
        binaries: Paths of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok and helm.
        folder: Its own folder, with the log of every part in `<part>.log`.
        processes: Its parts that have been started.
    """

    def __init__(
        self,
        binaries: Mapping[str, Path],
        folder: Path,
        url: str,
        authority: Authority,
        admin_token: str,
    ) -> None:
        super().__init__(url, folder / "ca.crt", admin_token)
        self.binaries = dict(binaries)
        self.folder = folder
        self.processes: list[Process] = []
        self._is_stopped = False
        self._authority = authority
        self.kubeconfig = self._write_kubeconfig("admin", {"token": self.admin_token})
        self._environ = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(folder / "kubectl"),
            "HELM_CACHE_HOME": str(folder / "helm" / "cache"),
            "HELM_CONFIG_HOME": str(folder / "helm" / "config"),
            "HELM_DATA_HOME": str(folder / "helm" / "data"),
            **ONE_SHOT,
        }

    def part(self, name: str) -> Process:
        """One of its parts, such as `etcd`."""
        (found,) = (each for each in self.processes if each.name == name)
        return found

    def stop_for_now(self, is_stopped: bool) -> None:
        """Stop all parts, or let them go on; nothing if that is how they are."""
        if is_stopped != self._is_stopped:
            self._is_stopped = is_stopped
            for each in self.processes:
                each.send(signal.SIGSTOP if is_stopped else signal.SIGCONT)

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        namespace: str | None = None,
        kubeconfig: Path | None = None,
        check: bool = True,
    ) -> Completed:
        """Run kubectl, as the administrator unless another kubeconfig is given.

        Raises:
            AssertionError: It failed and `check` is true; the message holds what it printed.
        """
        place = ["--namespace", namespace] if namespace else []
        user = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        return self._run([str(self.binaries["kubectl"]), *user, *place, *arguments], stdin, check)

    def helm(self, *arguments: str, namespace: str | None = None, check: bool = True) -> Completed:
        """Run helm as the administrator.

        Raises:
            AssertionError: It failed and `check` is true; the message holds what it printed.
        """
        place = ["--namespace", namespace] if namespace else []
        return self._run([str(self.binaries["helm"]), *place, *arguments], None, check)

    def token(self, service_account: str, namespace: str) -> str:
        """A bearer token of a service account that exists."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.create(path, body)
        token: str = answer["status"]["token"]
        return token

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with which one is `user` in `groups`, whoever that may be.

        Authentication is by client certificate. RBAC knows nothing of a new user: grant what it
        needs. `system:serviceaccount:NAMESPACE:NAME` works too, without the account existing.
        """
        certificate, key = self._authority.client(user, groups)
        name = f"user-{secrets.token_hex(4)}"
        paths = {"client-certificate": f"{name}.crt", "client-key": f"{name}.key"}
        (self.folder / paths["client-certificate"]).write_bytes(certificate)
        (self.folder / paths["client-key"]).write_bytes(key)
        return self._write_kubeconfig(
            name, {field: str(self.folder / path) for field, path in paths.items()}
        )

    def kubeconfig_for_token(self, token: str) -> Path:
        """A kubeconfig that carries a bearer token."""
        return self._write_kubeconfig(f"token-{secrets.token_hex(4)}", {"token": token})

    def add_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be created in it.

        One of the same name that another test has left may still be on its way out.
        """
        self.wait_until_gone(name)
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": dict(labels or {})},
        }
        self.create("/api/v1/namespaces", body)
        wait_until(lambda: self.has_service_account(name), f"service account of {name}", 30)

    def wait_until_gone(self, namespace: str) -> None:
        """Wait for a namespace that is on its way out; one that stays is left alone."""

        def going() -> bool:
            status, found = self.request("GET", f"/api/v1/namespaces/{namespace}")
            return status == 200 and "deletionTimestamp" in found["metadata"]

        wait_until(lambda: not going(), f"the former namespace {namespace} to be gone", 90)

    def has_service_account(self, namespace: str) -> bool:
        """Whether the controller manager has given the namespace the account that pods need."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        return self.request("GET", path)[0] == 200

    def add_node(
        self,
        name: str,
        cpu: str = "8",
        memory: str = "32Gi",
        pods: str = "110",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        extended: Mapping[str, str] | None = None,
    ) -> None:
        """Add a node played by kwok and wait until it is Ready.

        Args:
            name: Its name, also its label kubernetes.io/hostname.
            cpu: Allocatable processors.
            memory: Allocatable memory.
            pods: How many pods it takes.
            labels: Its further labels.
            taints: Taints as in the Node's spec.
            extended: Further resources, such as `{"nvidia.com/gpu": "8"}`.
        """
        amounts = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            },
            "spec": {"taints": [dict(taint) for taint in taints]},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
        self.create("/api/v1/nodes", body)
        wait_until(lambda: self._node_ready(name), f"node {name} to be Ready", 30)

    def remove_node(self, name: str) -> None:
        """Delete a node and, as Kubernetes' pod garbage collector does, the pods that were bound to it.

        They would be on the next node of that name.
        """
        self.request("DELETE", f"/api/v1/nodes/{name}")
        bound = f"fieldSelector=spec.nodeName%3D{name}"
        found = self.request("GET", f"/api/v1/pods?{bound}")[1]["items"]
        for namespace in sorted({each["metadata"]["namespace"] for each in found}):
            pods = f"/api/v1/namespaces/{namespace}/pods"
            self.request("DELETE", f"{pods}?{bound}&gracePeriodSeconds=0")

    def empty_namespace(self, name: str) -> None:
        """Begin to delete what makes pods in a namespace, and its pods, and leave the rest to the end of the control plane.

        To delete the namespace takes ten times as much, as the controller manager asks for objects of each kind that there is.
        """
        for kind in MAKING_PODS:
            status, answer = self.request(
                "DELETE", f"{kind.collection(name)}?propagationPolicy=Background"
            )
            assert status in (200, 404), answer

    def remove_namespace(self, name: str) -> None:
        """Begin to delete a namespace; what is in it goes within seconds."""
        self.request("DELETE", f"/api/v1/namespaces/{name}")

    def _node_ready(self, name: str) -> bool:
        status, node = self.request("GET", f"/api/v1/nodes/{name}")
        conditions = node.get("status", {}).get("conditions", []) if status == 200 else []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _run(self, command: Sequence[str], stdin: str | None, check: bool) -> Completed:
        answer = subprocess.run(
            command,
            input=stdin if stdin is not None else "",
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check and answer.returncode:
            shown = " ".join(["$", Path(command[0]).name, *command[1:]])
            raise AssertionError(
                f"{shown}\nexit code {answer.returncode}\n{answer.stdout}{answer.stderr}"
            )
        return answer

    def _write_kubeconfig(self, name: str, user: Mapping[str, str]) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {"server": self.url, "certificate-authority": str(self.ca)},
                }
            ],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config, indent=2))  # JSON is YAML
        path.chmod(0o600)
        return path
