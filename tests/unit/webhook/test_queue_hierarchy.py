"""Weights of a hierarchy are read as Go reads numbers: what Volcano refuses is refused, `strict-upstream` or not."""

import pytest

from pumice.api import keys
from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import queue
from tests.unit.webhook.reviewing import answer, request, reraise

PATH = "/queues/validate"


def found(hierarchy: str, weights: str, *, strict: bool = False) -> list[str]:
    """Codes for which a queue with these annotations is refused."""
    made = queue("made")
    made["metadata"]["annotations"] = {keys.HIERARCHY: hierarchy, keys.HIERARCHY_WEIGHTS: weights}
    settings = AdmissionSettings(strict_upstream=strict)
    admission = Admission(settings, Snapshot.of([]), builtin(), on_crash=reraise)
    response = answer(admission, PATH, request(PATH, made))
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    return [each["message"].rpartition("[")[2].rstrip("]") for each in causes]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("weight", ["1e400", "-1e400", "0x1p9999", "0x1", "1_0", "1f", "+nan", ""])
def test_what_is_no_number_or_too_large_for_one_is_refused(weight: str, *, strict: bool) -> None:
    assert found("root/a", f"1/{weight}", strict=strict) == ["Q-HIER-WEIGHT-NUM"]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("weight", ["0", "-0", "-1", "-Inf", "-infinity", "1e-400", "0x1p-9999"])
def test_what_is_not_above_nothing_is_refused(weight: str, *, strict: bool) -> None:
    assert found("root/a", f"1/{weight}", strict=strict) == ["Q-HIER-WEIGHT-POS"]


@pytest.mark.parametrize("weight", ["Inf", "+inf", "Infinity", "NaN", "nan"])
def test_only_what_volcano_admits_becomes_a_warning(weight: str) -> None:
    assert found("root/a", f"1/{weight}") == ["Q-HIER-WEIGHT-FINITE"]
    assert found("root/a", f"1/{weight}", strict=True) == []


@pytest.mark.parametrize("weight", ["2", "+2", ".5", "5.", "1e3", "0x1p-2", "0x.8p1", "0X1.8P+3"])
def test_numbers_are_numbers_however_they_are_written(weight: str) -> None:
    assert found("root/a", f"1/{weight}") == []


@pytest.mark.parametrize("strict", [False, True])
def test_the_only_step_of_a_hierarchy_needs_a_weight_too(*, strict: bool) -> None:
    assert found("root", "", strict=strict) == ["Q-HIER-WEIGHT-NUM"]
    assert found("root/a", "", strict=strict) == ["Q-HIER-LEN"]
    assert found("", "2", strict=strict) == []
