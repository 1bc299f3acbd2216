"""Pumice as a user installs it: the chart on a real API server, its components as local processes.

No kubelet runs on the test control plane, so the Deployments' pods never start. In their place, the
components run as processes here, with the arguments that the Deployments carry and as the service
accounts that the chart made, so that a missing right or an unknown flag fails a test.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.controlplane.processes import Process, PumiceProcess
from tests.support.mounts import SecretMount
from tests.support.ports import free_ports

NAMESPACE = "pumice-system"
RELEASE = "pumice"
CHART = Path(__file__).parents[2] / "charts/pumice"
LABEL = f"app.kubernetes.io/instance={RELEASE}"
ADMISSION = "admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io/v1"
CLUSTER_WIDE = (
    f"{ADMISSION}/mutatingwebhookconfigurations",
    f"{ADMISSION}/validatingwebhookconfigurations",
    f"{ADMISSION}/mutatingadmissionpolicybindings",
    f"{ADMISSION}/mutatingadmissionpolicies",
    f"{ADMISSION}/validatingadmissionpolicybindings",
    f"{ADMISSION}/validatingadmissionpolicies",
    f"{RBAC}/clusterrolebindings",
    f"{RBAC}/clusterroles",
)
"""Kinds of a release's objects that are in no namespace; whatever holds up requests is first."""
COMPONENTS = ("webhook", "controller", "scheduler")
SCHEDULER_CONF = "volcano-scheduler.conf"


class Installation:
    """An installed release whose components run here.

    Attributes:
        plane: The control plane that it is installed on.
        processes: The running components by name.
    """

    def __init__(
        self, plane: ControlPlane, folder: Path, ports: Sequence[int], *, forked: bool = False
    ) -> None:
        self.plane = plane
        self.processes: dict[str, Process] = {}
        self._folder = folder
        self._forked = forked
        self._ports = dict(zip(("https", *COMPONENTS), ports, strict=True))
        self._configuration = SecretMount(folder / "scheduler-config")

    def arguments(self, component: str) -> list[str]:
        """What the chart tells a component, with what only holds inside a pod put aside."""
        return self._arguments(self._pod(component))

    def _arguments(self, spec: dict[str, Any]) -> list[str]:
        arguments: list[str] = spec["containers"][0]["args"]
        for mounted, folder in self._mounted(spec):
            arguments = [each.replace(f"={mounted}/", f"={folder}/") for each in arguments]
        return [each for each in arguments if not each.startswith("--config=")]

    def _pod(self, component: str) -> dict[str, Any]:
        found = self._get("apis/apps/v1", f"deployments/{RELEASE}-{component}")
        spec: dict[str, Any] = found["spec"]["template"]["spec"]
        return spec

    def _get(self, group: str, path: str) -> dict[str, Any]:
        """An object of the release's namespace."""
        status, found = self.plane.request("GET", f"/{group}/namespaces/{NAMESPACE}/{path}")
        assert status == 200, found
        return found

    def _patch(self, group: str, path: str, change: dict[str, Any]) -> None:
        status, answer = self.plane.request(
            *("PATCH", f"/{group}/namespaces/{NAMESPACE}/{path}", change),
            content_type="application/merge-patch+json",
        )
        assert status == 200, answer

    def _mounted(self, spec: dict[str, Any]) -> Iterator[tuple[str, Path]]:
        """Where each Secret is mounted in the container, and where it is here."""
        secrets = {each["name"]: each["secret"] for each in spec["volumes"] if "secret" in each}
        for mount in spec["containers"][0].get("volumeMounts", ()):
            if mount["name"] in secrets:
                name = secrets[mount["name"]]["secretName"]
                data = self._get("api/v1", f"secrets/{name}")["data"]
                folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._folder)) / "mounted"
                SecretMount(folder).put({key: base64.b64decode(data[key]) for key in data})
                yield mount["mountPath"], folder

    def start(self, *components: str) -> None:
        """Start components as the chart would, and wait until they are ready."""
        for component in components:
            self._launch(component)
        for component in components:
            process = self.processes[component]
            wait_until(lambda: self.ready(component), f"{component} is ready", 60, [process])  # noqa: B023

    def _launch(self, component: str) -> None:
        account = self.plane.token(f"{RELEASE}-{component}", NAMESPACE)
        kubeconfig = self.plane.kubeconfig_for_token(account)
        here = [f"--kubeconfig={kubeconfig}", f"--metrics-port={self._ports[component]}"]
        if component == "webhook":
            here += ["--host=127.0.0.1", f"--port={self._ports['https']}"]
        if component == "scheduler":
            self._mount_scheduler_config()
            here += [f"--config={self.scheduler_config}"]
        pod = self._pod(component)
        variables = {each["name"]: each["value"] for each in pod["containers"][0].get("env", ())}
        arguments = [*self._arguments(pod), *here]
        if self._forked:
            process: Process = PumiceProcess(component, arguments, self._folder, variables)
        else:
            given = [f"{name}={value}" for name, value in variables.items()]
            program = ["/usr/bin/env", *given, sys.executable, "-m", "pumice"]
            process = Process(component, [*program, *arguments], self._folder)
        self.processes[component] = process

    def stop(self, component: str) -> None:
        """Kill a component without warning."""
        self.processes.pop(component).end()

    def stop_leader(self, component: str) -> None:
        """Kill an elected component without warning; its Lease runs out in a second instead of 15."""
        self.stop(component)
        lease = f"leases/{RELEASE}-{component}"
        self._patch("apis/coordination.k8s.io/v1", lease, {"spec": {"leaseDurationSeconds": 1}})

    def restart(self, component: str) -> None:
        """Kill a component and start it again."""
        self.stop(component)
        self.start(component)

    def ready(self, component: str) -> bool:
        """Whether the component says so itself."""
        try:
            with urllib.request.urlopen(self.url(component, "/readyz"), timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def url(self, component: str, path: str) -> str:
        """An address on the component's port for probes and metrics."""
        return f"http://127.0.0.1:{self._ports[component]}{path}"

    def metrics(self, component: str) -> str:
        """What the component counts, as Prometheus reads it."""
        return self.answer(component, "/metrics")

    def answer(self, component: str, path: str) -> str:
        """What the component answers on its port for probes and metrics, with status 200."""
        with urllib.request.urlopen(self.url(component, path), timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    @property
    def scheduler_config(self) -> Path:
        """The scheduler's configuration, as it is mounted."""
        return self._configuration.folder / SCHEDULER_CONF

    def configure_scheduler(self, text: str) -> None:
        """Change the scheduler's ConfigMap, and its mounted file as kubelet does then."""
        self._patch("api/v1", f"configmaps/{RELEASE}-scheduler", {"data": {SCHEDULER_CONF: text}})
        self._mount_scheduler_config()

    def _mount_scheduler_config(self) -> None:
        data: dict[str, str] = self._get("api/v1", f"configmaps/{RELEASE}-scheduler")["data"]
        self._configuration.put({name: text.encode() for name, text in data.items()})


def remove_cluster_wide(plane: ControlPlane) -> None:
    """Delete the objects of the release that are in no namespace: Helm leaves alone what kubectl has applied."""
    for path in CLUSTER_WIDE:
        status, answer = plane.request("DELETE", f"/apis/{path}?labelSelector={LABEL}")
        assert status == 200, answer


@contextmanager
def installed(
    plane: ControlPlane,
    folder: Path,
    *settings: str,
    components: Sequence[str] = COMPONENTS,
    forked: bool = False,
) -> Iterator[Installation]:
    """Install the chart, run its components, and take everything away again but the CRDs.

    Args:
        plane: Where.
        folder: For the logs of its components.
        settings: Further arguments of `helm install`.
        components: Those that run.
        forked: Whether they are forked from a process that has imported Pumice, which shows in their memory and saves time.
    """
    ports = free_ports(1 + len(COMPONENTS))
    installation = Installation(plane, folder, ports, forked=forked)
    url = f"https://127.0.0.1:{ports[0]}"
    plane.wait_until_gone(NAMESPACE)
    arguments = (RELEASE, str(CHART), "--create-namespace", "--set", f"webhook.url={url}")
    # What docs/operations.md installs is validated.
    plane.helm(
        "install", *arguments, *settings, "--disable-openapi-validation", namespace=NAMESPACE
    )
    try:
        installation.start(*components)
        yield installation
    finally:
        for process in installation.processes.values():
            process.end()
        plane.helm("uninstall", RELEASE, namespace=NAMESPACE, check=False)
        remove_cluster_wide(plane)
        plane.remove_namespace(NAMESPACE)
