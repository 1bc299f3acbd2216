import pytest

from pumice.certs.rotation import CertSettings
from tests.unit.certs.keys import SETTINGS


@pytest.fixture
def settings() -> CertSettings:
    return SETTINGS
