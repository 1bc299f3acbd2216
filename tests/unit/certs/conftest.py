import pytest

from pumice.certs.settings import CertSettings
from tests.unit.certs.keys import SETTINGS


@pytest.fixture
def settings() -> CertSettings:
    return SETTINGS
