"""The generated CRDs, established on a real API server."""

from __future__ import annotations

import pytest

from tests.e2e.crds.objects import CRDS
from tests.kit.tables import documents
from tests.support.controlplane.cluster import ControlPlane


@pytest.fixture(scope="module", autouse=True)
def crds(controlplane: ControlPlane) -> None:
    """The CRDs, established; they stay for whoever comes next."""
    texts = [path.read_text() for path in sorted(CRDS.glob("*.yaml"))]
    controlplane.define(*(each for text in texts for each in documents(text)))
