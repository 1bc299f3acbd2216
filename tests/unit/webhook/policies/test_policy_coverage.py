"""The coverage table: a word on every rule, and none on a rule that is not."""

import pytest

from pumice.api import kinds
from pumice.webhook.policies import coverage as covering
from pumice.webhook.policies.coverage import (
    DEFAULTS_LEFT,
    PARTLY,
    SCHEMA,
    coverage,
    left_out,
    table,
)
from pumice.webhook.policies.rooms import ROOMS, forms_of
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.rules.catalogue import ALL

CODES = {rule.code for rule in ALL}
WITH_FORMS = {form.code for kind in ROOMS for form in forms_of(kind)}


def test_something_is_said_of_every_rule() -> None:
    found = table()
    assert [each.code for each in found] == [rule.code for rule in ALL]
    for each in found:
        assert each.kinds or each.schema or each.note, each.code


def test_nothing_is_said_of_rules_that_are_not() -> None:
    assert set(PARTLY) <= WITH_FORMS
    assert set(SCHEMA) <= CODES
    for beginning in covering._LEFT:
        assert any(code.startswith(beginning) and code not in WITH_FORMS for code in CODES), (
            beginning
        )


def test_why_a_kind_does_not_have_a_rule() -> None:
    assert left_out("JOB-NO-TASKS", kinds.JOB) == ""
    assert left_out("JOB-QUEUE-MISSING", kinds.JOB) == "needs other objects of the cluster"
    assert left_out("JOB-NEGATIVE", kinds.JOB) == "has its place in the schema of the CRD"
    assert left_out("TPL-PROBE", kinds.JOB).endswith("the API server refuses the pods")
    assert left_out("TPL-UNKNOWN", kinds.JOB).endswith("nobody is warned")
    assert "JobFlow" in left_out("JOB-PLUGIN", kinds.JOB_FLOW)
    with pytest.raises(LookupError, match="FLOW-NAME for a Job"):
        left_out("FLOW-NAME", kinds.JOB)
    with pytest.raises(LookupError, match="no rule ever"):
        coverage("no rule ever")


def test_every_kind_with_a_webhook_that_validates_has_policies() -> None:
    assert set(ROOMS) == {each.kind for each in REGISTRATIONS if not each.mutating}


def test_what_is_not_defaulted_is_said_of_kinds_that_are_defaulted() -> None:
    assert set(DEFAULTS_LEFT) <= {each.kind for each in REGISTRATIONS if each.mutating}
