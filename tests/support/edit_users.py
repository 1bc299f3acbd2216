"""Users of a shared cluster, each bound to the ClusterRole `edit` of Kubernetes in one namespace and to nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.kinds import JOB, POD
from pumice.api.pods import Pod
from pumice.cluster.cache import WatchCache
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.kit.builders import job, task
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane

Raw = dict[str, Any]

GANG = 2
"""Pods of a gang."""


class EditUser:
    """A user who may do in a namespace what `edit` allows, with the rights that the chart adds to it.

    Attributes:
        client: The user's session with the API server, by a client certificate.
        namespace: The user's namespace.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def may_create_jobs(self) -> bool:
        """Whether the user's Jobs are admitted by now: rights and webhooks take a moment to be in effect."""
        try:
            await self.client.create(JOB, _manifest("asking"), self.namespace, dry_run=True)
        except ApiError:
            return False
        return True


@asynccontextmanager
async def edit_user(plane: ControlPlane, namespace: str) -> AsyncIterator[EditUser]:
    """A user of the namespace's name, who may create Jobs there; the namespace must exist."""
    _may_edit(plane, namespace, namespace)
    async with Client.connect(plane.kubeconfig_for(namespace)) as client:
        found = EditUser(client, namespace)
        await until(found.may_create_jobs, f"Jobs of {namespace} to be admitted")
        yield found


def _may_edit(plane: ControlPlane, user: str, namespace: str) -> None:
    """Bind a user to the ClusterRole `edit` in a namespace."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    path = f"/apis/{group}/v1/namespaces/{namespace}/rolebindings"
    status, answer = plane.request("POST", path, binding)
    assert status == 201, answer


class Gangs:
    """A user's gangs of two pods, one after the other, and how long each took from its submission until it was bound."""

    def __init__(self, user: EditUser, pods: WatchCache[Pod]) -> None:
        """Describe them.

        Args:
            user: Whose they are.
            pods: A running watch of the user's pods.
        """
        self._user = user
        self._pods = pods
        self._number = 0

    async def one(self, limit: float) -> float:
        """Submit a gang, wait until all of its pods have a node, and delete it.

        Returns:
            Seconds until it was bound.

        Raises:
            NotReadyError: It took longer than the limit in seconds.
        """
        self._number += 1
        name, namespace = f"gang-{self._number}", self._user.namespace
        start = time.monotonic()
        await self._user.client.create(JOB, _manifest(name), namespace)
        await until(lambda: self._bound(name), f"{name} to be bound", limit)
        seconds = time.monotonic() - start
        await self._user.client.delete(JOB, name, namespace, propagation="Background")
        return seconds

    def _bound(self, name: str) -> bool:
        found = (self._pods.get(f"{name}-w-{index}", self._user.namespace) for index in range(GANG))
        return all(pod is not None and pod.spec.node_name for pod in found)


def pods_of(user: EditUser) -> WatchCache[Pod]:
    """A watch of the user's pods, with the user's rights; it is to be run."""
    return WatchCache(user.client, POD, Pod, namespace=user.namespace)


def _manifest(name: str) -> Raw:
    manifest = job(name, [task("w", GANG, cpu="10m")], minAvailable=GANG, queue="default")
    del manifest["metadata"]["namespace"]
    return manifest
