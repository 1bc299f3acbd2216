"""Whatever the review, the answer is a proper one: many reviews, hardly any as somebody would write them.

`test_over_http` sends more of them to a server. Here each is judged in the cluster, and by the settings, that
the real one was written for.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.registrations import REGISTRATIONS
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.fuzz.corpus import corpus
from tests.fuzz.judging import checked, fuzzed
from tests.fuzz.mutations import Mutator
from tests.fuzz.running import run
from tests.unit.webhook.reviewing import request, reraise, review
from tests.unit.webhook.shapes import JSON, OBJECTS

PATHS = [each.path for each in REGISTRATIONS]
ADMISSION = Admission(AdmissionSettings(), Snapshot(), builtin(), on_crash=reraise)


def test_every_answer_is_a_proper_one_and_in_time_and_no_rule_raises() -> None:
    """3,600 mutated reviews; 2,000 where hypothesis is asked to be quick, and 10,000 where it is to draw many."""
    tally = run("test", max(2_000, min(100, settings().max_examples) ** 2))
    assert not tally.failures, f"{len(tally.failures)} are not, such as {tally.failures[0]}"
    assert not tally.crashes
    # They are worth judging: some pass, some are changed, many are refused, and by many rules.
    total = tally.outcomes.total()
    assert tally.outcomes["allowed"] > total / 10
    assert tally.outcomes["patched"] > total / 50
    assert tally.outcomes["422"] > total / 4
    assert total / 20 < tally.outcomes["400"] < total / 2
    assert len(tally.rules) >= 50


def test_the_same_seed_makes_the_same_reviews() -> None:
    bodies = [each.body for each in corpus()]
    for seed in ("a", "b"):
        one, other = (Mutator(seed, bodies) for _ in range(2))
        assert [one.mutated(body) for body in bodies] == [other.mutated(body) for body in bodies]
    assert fuzzed("a", 300).outcomes == fuzzed("a", 300).outcomes


@settings(deadline=None)
@given(st.sampled_from(PATHS), st.one_of(st.binary(max_size=200), st.text().map(str.encode)))
def test_any_bytes_get_an_answer(path: str, body: bytes) -> None:
    checked(body, ADMISSION.answer(path, body).body)


@settings(deadline=None)
@given(
    st.sampled_from(PATHS),
    st.one_of(st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT", ""]), JSON),
    st.one_of(OBJECTS, JSON),
    st.one_of(OBJECTS, JSON),
    st.dictionaries(st.sampled_from(["uid", "resource", "name", "namespace", "subResource"]), JSON),
)
def test_any_json_gets_an_answer(
    path: str, operation: object, new: object, old: object, others: dict[str, object]
) -> None:
    asked = request(path, None) | {"operation": operation, "object": new, "oldObject": old} | others
    body = review(asked)
    checked(body, ADMISSION.answer(path, body).body)


@settings(deadline=None)
@given(st.sampled_from(PATHS), JSON)
def test_any_json_in_place_of_a_review_gets_an_answer(path: str, asked: object) -> None:
    for body in (review({}) if asked is None else review({"uid": asked}), str(asked).encode()):
        checked(body, ADMISSION.answer(path, body).body)
