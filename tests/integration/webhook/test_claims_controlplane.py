"""Claims that Jobs bring along, judged by Pumice and by the real kube-apiserver, as dry runs."""

from typing import Any

from tests.support.controlplane.cluster import ControlPlane
from tests.unit.webhook.claim_rows import claim_rows

Raw = dict[str, Any]

REFUSALS = {400, 422}
"""Not decoded, refused by validation."""


def test_what_a_row_refuses_the_api_server_refuses_too(
    controlplane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims?dryRun=All"
    differing = []
    for row, spec in claim_rows():
        body: Raw = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
        status, answer = controlplane.request("POST", path, body | {"metadata": {"name": "data"}})
        assert status == 201 or status in REFUSALS, answer
        if (status in REFUSALS) != bool(row.get("paths")):
            differing.append((row["id"], status, answer.get("message")))
    assert differing == []
