"""The real control plane does what the tests on it take for granted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.waiting import wait_until
from tests.support.controlplane.cluster import ControlPlane

AddNode = Callable[..., str]


def pod(name: str, node: str, **annotations: str) -> str:
    """A pod that is bound already, as kubectl reads it."""
    ours = {f"pumice.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": ours},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "busybox"}]},
        }
    )


def await_phase(plane: ControlPlane, name: str, namespace: str, phase: str) -> dict[str, Any]:
    """The pod once it is in that phase."""
    condition = f"--for=jsonpath={{.status.phase}}={phase}"
    plane.kubectl("wait", f"pod/{name}", condition, "--timeout=20s", namespace=namespace)
    status, found = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    assert status == 200
    return found


def terminated(found: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = found["status"]["containerStatuses"][0]["state"]["terminated"]
    return state


def test_server_and_client_read_as_the_pinned_version(controlplane: ControlPlane) -> None:
    version = json.loads(controlplane.kubectl("version", "-o", "json").stdout)
    for side in ("serverVersion", "clientVersion"):
        read = version[side]
        assert (read["gitVersion"], read["major"], read["minor"]) == ("v1.36.3", "1", "36")


def test_helm_is_of_the_fourth_generation(controlplane: ControlPlane) -> None:
    assert controlplane.helm("version", "--template={{.Version}}").stdout.startswith("v4.")


def test_a_node_becomes_ready_with_the_resources_asked_for(
    controlplane: ControlPlane, add_node: AddNode
) -> None:
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    add_node(
        "gpu-1",
        cpu="16",
        memory="64Gi",
        pods="20",
        labels={"zone": "a"},
        taints=[taint],
        extended={"nvidia.com/gpu": "8"},
    )
    _, node = controlplane.request("GET", "/api/v1/nodes/gpu-1")
    wanted = {"cpu": "16", "memory": "64Gi", "pods": "20", "nvidia.com/gpu": "8"}
    assert node["status"]["allocatable"] == wanted
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "gpu-1", "zone": "a"}
    assert node["spec"]["taints"] == [taint]


def test_a_bound_pod_runs_and_succeeds_after_the_time_in_its_annotation(
    controlplane: ControlPlane, namespace: str, add_node: AddNode
) -> None:
    manifest = pod("brief", add_node("node-1"), run_duration="1s")
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    running = await_phase(controlplane, "brief", namespace, "Running")
    assert running["status"]["podIP"]
    ended = await_phase(controlplane, "brief", namespace, "Succeeded")
    assert terminated(ended)["exitCode"] == 0
    assert terminated(ended)["reason"] == "Completed"


def test_a_pod_that_is_bound_before_its_node_is_known_runs(
    controlplane: ControlPlane, namespace: str, add_node: AddNode
) -> None:
    """In this order kwok hears of them when it is restarted."""
    name = f"{namespace}-late"
    controlplane.kubectl("create", "-f", "-", stdin=pod("early", name), namespace=namespace)
    add_node(name)
    await_phase(controlplane, "early", namespace, "Running")


def test_a_pod_with_an_exit_code_fails_with_it(
    controlplane: ControlPlane, namespace: str, add_node: AddNode
) -> None:
    manifest = pod("failing", add_node("node-1"), run_duration="100ms", exit_code="3")
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    ended = await_phase(controlplane, "failing", namespace, "Failed")
    assert terminated(ended)["exitCode"] == 3
    assert terminated(ended)["reason"] == "Error"


def test_a_pod_without_a_time_runs_until_it_is_deleted(
    controlplane: ControlPlane, namespace: str, add_node: AddNode
) -> None:
    manifest = pod("lasting", add_node("node-1"))
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace=namespace)
    await_phase(controlplane, "lasting", namespace, "Running")
    controlplane.kubectl("delete", "pod", "lasting", "--timeout=20s", namespace=namespace)
    path = f"/api/v1/namespaces/{namespace}/pods/lasting"
    assert controlplane.request("GET", path)[0] == 404


def test_the_deletion_of_a_namespace_finishes(
    controlplane: ControlPlane, add_node: AddNode
) -> None:
    controlplane.add_namespace("passing")
    manifest = pod("one", add_node("node-1"))
    controlplane.kubectl("apply", "-f", "-", stdin=manifest, namespace="passing")
    controlplane.remove_namespace("passing")
    wait_until(
        lambda: controlplane.request("GET", "/api/v1/namespaces/passing")[0] == 404,
        "namespace passing to be gone",
        60,
    )


def test_what_an_object_owns_is_collected_with_it(
    controlplane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    _, owner = controlplane.request("POST", path, {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    owned = {"name": "owned", "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}]}
    controlplane.request("POST", path, {"metadata": owned})
    controlplane.request("DELETE", f"{path}/owner")
    wait_until(
        lambda: controlplane.request("GET", f"{path}/owned")[0] == 404,
        "the owned object to be collected",
        60,
    )


def test_an_unprivileged_token_is_denied(controlplane: ControlPlane, namespace: str) -> None:
    controlplane.kubectl("create", "serviceaccount", "nobody", namespace=namespace)
    token = controlplane.token("nobody", namespace)
    path = f"/api/v1/namespaces/{namespace}/pods"
    status, answer = controlplane.request("GET", path, token=token)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert f"system:serviceaccount:{namespace}:nobody" in answer["message"]


def test_an_unknown_token_is_not_accepted(controlplane: ControlPlane) -> None:
    assert controlplane.request("GET", "/api/v1/nodes", token="forged")[0] == 401


def test_a_role_is_granted_to_the_user_and_groups_of_a_kubeconfig(
    controlplane: ControlPlane, namespace: str
) -> None:
    user = controlplane.kubeconfig_for("ada", ["researchers"])

    def may_list_pods() -> str:
        question = ["auth", "can-i", "list", "pods"]
        answer = controlplane.kubectl(*question, kubeconfig=user, namespace=namespace, check=False)
        return answer.stdout.strip()

    assert may_list_pods() == "no"
    grant = ["create", "rolebinding", "see", "--clusterrole=view", "--group=researchers"]
    controlplane.kubectl(*grant, namespace=namespace)
    # The API server learns of roles by watching.
    wait_until(lambda: may_list_pods() == "yes", "the role to be in effect")


def test_a_kubeconfig_with_a_token_is_that_account(
    controlplane: ControlPlane, namespace: str
) -> None:
    kubeconfig = controlplane.kubeconfig_for_token(controlplane.token("default", namespace))
    answer = controlplane.kubectl("auth", "whoami", kubeconfig=kubeconfig)
    assert f"system:serviceaccount:{namespace}:default" in answer.stdout


def test_a_command_that_fails_shows_what_it_printed(controlplane: ControlPlane) -> None:
    with pytest.raises(
        AssertionError, match=r"(?s)\$ kubectl get nosuchthing.*doesn't have a resource"
    ):
        controlplane.kubectl("get", "nosuchthing")


def test_helm_installs_a_chart_and_takes_it_away(
    controlplane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 0.1.0\n")
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n"
    template += 'data: {kubernetes: "{{ .Capabilities.KubeVersion }}"}\n'
    (tmp_path / "templates" / "map.yaml").write_text(template)
    controlplane.helm("install", "it", str(tmp_path), namespace=namespace)
    path = f"/api/v1/namespaces/{namespace}/configmaps/it"
    assert controlplane.request("GET", path)[1]["data"] == {"kubernetes": "v1.36.3"}
    controlplane.helm("uninstall", "it", namespace=namespace)
    assert controlplane.request("GET", path)[0] == 404


def test_namespaces_are_the_tests_own(controlplane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    assert controlplane.request("GET", path)[1]["items"] == []
