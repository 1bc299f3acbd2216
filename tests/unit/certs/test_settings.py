"""Durations that would leave a gap are refused, with the bound that they break."""

import pytest

from pumice.certs.rotation import DAY, CertSettings


def test_the_defaults_fit_together() -> None:
    settings = CertSettings("svc", "ns")
    assert settings.names == ("svc", "svc.ns", "svc.ns.svc", "svc.ns.svc.cluster.local")
    assert settings.host == "svc.ns.svc"


def test_extra_names_come_last_and_once() -> None:
    settings = CertSettings("svc", "ns", extra_names=("other", "svc.ns"))
    assert settings.names[-1] == "other"
    assert len(settings.names) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"leaf_duration": 200 * DAY}, "leaf_duration must be at most"),
        ({"poll_seconds": 6 * DAY}, "poll_seconds must be positive and less than half"),
        ({"poll_seconds": 0.0}, "poll_seconds must be positive"),
        ({"renew_at": 1.0}, "renew_at must lie between 0 and 1"),
    ],
)
def test_gaps_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CertSettings("svc", "ns", **given)  # type: ignore[arg-type]
