"""Over the years: what is done when, and that no chain is ever broken."""

import pytest

from pumice.certs.authority import Leaf, not_after, same
from pumice.certs.bundle import Bundle
from pumice.certs.rotation import (
    DAY,
    CertSettings,
    Step,
    first_bundle,
    leaf_is_due,
    new_leaf,
    next_step,
    up_to_date,
)
from pumice.certs.verification import problem_with
from tests.unit.certs.keys import NOW, SETTINGS, CountingKeys, authority

YEAR = 365 * DAY


@pytest.fixture
def keys() -> CountingKeys:
    return CountingKeys()


def fresh(keys: CountingKeys) -> Bundle:
    return first_bundle(SETTINGS, NOW, keys)


def test_from_nothing_two_cas_are_made_with_staggered_ends(keys: CountingKeys) -> None:
    bundle, steps = up_to_date(None, SETTINGS, NOW, keys)
    assert steps == (Step.CREATE,)
    assert keys.made == 2
    assert bundle.next is not None
    assert bundle.current.end == NOW + YEAR
    assert bundle.next.end == pytest.approx(NOW + YEAR * 5 / 3, abs=1)


def test_nothing_is_done_before_two_thirds(keys: CountingKeys) -> None:
    bundle = fresh(keys)
    for day in range(243):
        assert next_step(bundle, SETTINGS, NOW + day * DAY) is None


def test_at_two_thirds_the_next_ca_signs_and_has_a_year(keys: CountingKeys) -> None:
    before = fresh(keys)
    moment = NOW + YEAR * 2 / 3 + 1
    after, steps = up_to_date(before, SETTINGS, moment, keys)
    assert steps == (Step.PROMOTE,)
    assert before.next is not None
    assert same(after.current.certificate, before.next.certificate)
    assert after.current.end - moment == pytest.approx(YEAR, abs=2)
    assert after.previous == (before.current.certificate,)
    assert after.next is not None
    assert after.next.end - moment == pytest.approx(YEAR * 5 / 3, abs=2)


def test_a_ca_of_the_past_is_forgotten_when_it_expires(keys: CountingKeys) -> None:
    promoted, _ = up_to_date(fresh(keys), SETTINGS, NOW + 250 * DAY, keys)
    assert next_step(promoted, SETTINGS, NOW + YEAR - 1) is None
    forgotten, steps = up_to_date(promoted, SETTINGS, NOW + YEAR, keys)
    assert steps == (Step.FORGET,)
    assert forgotten.previous == ()


def test_a_missing_next_ca_is_made(keys: CountingKeys) -> None:
    bundle, steps = up_to_date(Bundle(authority()), SETTINGS, NOW, keys)
    assert steps == (Step.PREPARE,)
    assert bundle.next is not None


@pytest.mark.parametrize("years", [1.1, 1.5, 1.66])
def test_a_cluster_that_slept_takes_the_next_ca(keys: CountingKeys, years: float) -> None:
    bundle = fresh(keys)
    woken, steps = up_to_date(bundle, SETTINGS, NOW + years * YEAR, keys)
    assert Step.CREATE not in steps
    assert steps[0] is Step.PROMOTE
    assert next_step(woken, SETTINGS, NOW + years * YEAR) is None
    # Leaves of the CA that was to follow are accepted, even where it is about to end itself.
    assert bundle.next is not None
    assert any(same(bundle.next.certificate, each) for each in woken.trusted)


def test_a_cluster_that_slept_for_years_begins_anew(keys: CountingKeys) -> None:
    moment = NOW + 4 * YEAR
    woken, steps = up_to_date(fresh(keys), SETTINGS, moment, keys)
    assert steps == (Step.CREATE,)
    assert woken.previous == ()
    leaf = new_leaf(woken, SETTINGS, moment, keys)
    assert problem_with(leaf.certificate_pem, woken.trust, SETTINGS.host, moment) is None


def test_a_clock_that_was_wrong_is_survived(keys: CountingKeys) -> None:
    made_in_the_future = first_bundle(SETTINGS, NOW + 30 * DAY, keys)
    bundle, steps = up_to_date(made_in_the_future, SETTINGS, NOW, keys)
    assert steps == (Step.CREATE,)
    assert next_step(bundle, SETTINGS, NOW) is None
    assert next_step(bundle, SETTINGS, NOW + 30 * DAY) is None


def test_longer_durations_take_effect(keys: CountingKeys) -> None:
    short = CertSettings("webhook", "system", ca_duration=90 * DAY, leaf_duration=DAY)
    bundle = first_bundle(short, NOW, keys)
    grown, _ = up_to_date(bundle, SETTINGS, NOW, keys)
    assert next_step(grown, SETTINGS, NOW) is None
    assert any(same(bundle.current.certificate, each) for each in grown.trusted)


def test_other_cas_can_be_trusted_from_the_start(keys: CountingKeys) -> None:
    old, expired = authority(), authority(NOW - 9 * DAY, NOW - DAY)
    trusted = (old.certificate, expired.certificate)
    bundle, _ = up_to_date(None, SETTINGS, NOW, keys, trusted)
    assert bundle.previous == (old.certificate,)


def test_leaves_are_replaced_at_two_thirds(keys: CountingKeys) -> None:
    bundle = fresh(keys)
    leaf = new_leaf(bundle, SETTINGS, NOW, keys)
    assert not_after(leaf.certificate) == NOW + 30 * DAY
    assert leaf_is_due(None, bundle, SETTINGS, NOW)
    assert not leaf_is_due(leaf, bundle, SETTINGS, NOW + 19.9 * DAY)
    assert leaf_is_due(leaf, bundle, SETTINGS, NOW + 20 * DAY)


def test_leaves_are_replaced_when_another_ca_signs(keys: CountingKeys) -> None:
    bundle = fresh(keys)
    leaf = new_leaf(bundle, SETTINGS, NOW, keys)
    assert bundle.next is not None
    assert leaf_is_due(leaf, Bundle(bundle.next), SETTINGS, NOW)
    assert leaf_is_due(leaf, fresh(keys), SETTINGS, NOW)


@pytest.mark.parametrize("pace", [6.7, 19.0])
def test_for_ten_years_every_leaf_in_use_is_trusted(keys: CountingKeys, pace: float) -> None:
    """Two processes look every `pace` days, out of step; clients trust what was injected last."""
    bundle = fresh(keys)
    leaves: list[Leaf | None] = [None, None]
    seen: list[Leaf] = []
    moment, turn = NOW, 0
    while moment < NOW + 10 * YEAR:
        trusted_before = bundle.trust
        bundle, _ = up_to_date(bundle, SETTINGS, moment, keys)
        mine = leaves[turn]
        if leaf_is_due(mine, bundle, SETTINGS, moment):
            mine = leaves[turn] = new_leaf(bundle, SETTINGS, moment, keys)
            seen.append(mine)
        for leaf in leaves:
            if leaf is not None:
                for trust in (trusted_before, bundle.trust):
                    chain = leaf.certificate_pem
                    assert problem_with(chain, trust, SETTINGS.host, moment) is None
        moment += pace * DAY / 2
        turn = 1 - turn
    assert len(seen) > 100
