"""What the chart allows the webhook, for replicas beside an installed one."""

from collections.abc import Callable
from pathlib import Path

from pumice.cluster.client import Object
from tests.kit.tables import documents
from tests.support.controlplane.cluster import ControlPlane

CHART = Path(__file__).parents[3] / "charts" / "pumice"
TEMPLATE = "templates/webhook/rbac.yaml"


def rights(plane: ControlPlane, renamed: Callable[[str], str | None]) -> dict[str, list[Object]]:
    """The rules of the chart's Role and ClusterRole, by kind.

    Args:
        plane: Has helm.
        renamed: What a webhook configuration is called here; None where there is none of it.
    """
    text = plane.helm("template", "pumice", str(CHART), "--show-only", TEMPLATE).stdout
    found = {
        each["kind"]: each["rules"]
        for each in documents(text)
        if each["kind"] in ("Role", "ClusterRole")
    }
    assert set(found) == {"Role", "ClusterRole"}, text
    for rule in found["ClusterRole"]:
        if rule["apiGroups"] == ["admissionregistration.k8s.io"]:
            names = map(renamed, rule["resourceNames"])
            rule["resourceNames"] = [name for name in names if name is not None]
            assert rule["resourceNames"], "without a name it would be allowed for all"
    return found
