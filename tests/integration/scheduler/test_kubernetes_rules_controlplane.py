"""The real kube-scheduler is asked now: it says what is recorded, and what Pumice says of a cluster that is not recorded."""

import pytest

from tests.reference.clusters import draw
from tests.reference.feasible import feasible
from tests.reference.recorder import recording
from tests.reference.records import read
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.start import started

pytestmark = pytest.mark.controlplane

ALL = 9
"""Number of a cluster whose pods have rules of all families."""


def test_kube_scheduler_says_what_is_recorded_and_what_pumice_says() -> None:
    recorded = list(read())
    with started(Builder().ensure(), kwok=False) as plane, recording(plane) as recorder:
        again = recorder.record(draw("kubernetes", ALL))
        new = recorder.record(draw("another", ALL))

    assert again == recorded[ALL]
    found = feasible(new)
    assert found == {key: new["feasible"][key] for key in found}
