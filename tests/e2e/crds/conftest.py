"""The generated CRDs, established on a real API server."""

from __future__ import annotations

import pytest

from tests.e2e.crds.objects import CRDS
from tests.support.controlplane.cluster import ControlPlane


@pytest.fixture(scope="module", autouse=True)
def crds(controlplane: ControlPlane) -> None:
    """The CRDs, established; they stay for whoever comes next."""
    controlplane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    names = [f"crd/{path.stem}" for path in sorted(CRDS.glob("*.yaml"))]
    controlplane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
