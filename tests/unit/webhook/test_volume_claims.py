from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case, EnoughError
from pumice.webhook.rules.jobs.volumes import VOL_CLAIM, new_claim
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.unit.webhook.claim_rows import claim_rows

Raw = dict[str, Any]

PATH = "spec.volumes[0].volumeClaim"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["matchLabels", "matchExpressions", "key", "operator", "values", "kind", "name"]
            )
            | st.text(max_size=2),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "accessModes",
        "dataSource",
        "dataSourceRef",
        "resources",
        "selector",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
        "volumeName",
    ]
)


def judged(claim: Raw) -> Case:
    case = Case(AdmissionSettings(), Snapshot(), builtin())
    new_claim(case, claim, PATH)
    return case


@pytest.mark.parametrize(
    ("row", "claim"), [pytest.param(*each, id=each[0]["id"]) for each in claim_rows()]
)
def test_a_row_is_reported_as_it_says(row: Raw, claim: Raw) -> None:
    case = judged(claim)
    assert [found.path for found in case.errors] == [
        f"{PATH}.{path}" for path in row.get("paths", ())
    ]
    assert {found.code for found in case.errors} <= {VOL_CLAIM.code}
    for text in row.get("message", ()):
        assert any(text in found.message for found in case.errors)


@given(st.dictionaries(FIELDS, VALUES))
def test_a_claim_of_any_shape_is_judged(claim: Raw) -> None:
    assert all(found.path.startswith(PATH) for found in judged(claim).errors)


def test_problems_of_a_claim_are_looked_for_until_there_are_enough() -> None:
    case = Case(AdmissionSettings(), Snapshot(), builtin(), most=5)
    with pytest.raises(EnoughError):
        new_claim(case, {**CLAIM, "accessModes": ["Odd"] * 1000}, PATH)
    assert len(case.errors) == 5
