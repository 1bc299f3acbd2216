"""Delays grow, end at the cap, and differ between processes but not between runs."""

import pytest

from pumice.cluster.clock import Backoff


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(base=1.0, cap=10.0, spread=0.0)
    assert [backoff.delay(attempt) for attempt in range(6)] == [1, 2, 4, 8, 10, 10]
    assert backoff.delay(10_000) == 10


@pytest.mark.parametrize("attempt", range(8))
def test_the_spread_only_shortens(attempt: int) -> None:
    full = Backoff(spread=0.0).delay(attempt)
    spread = Backoff(spread=0.3, seed="a").delay(attempt)
    assert 0.7 * full <= spread <= full
    assert spread == Backoff(spread=0.3, seed="a").delay(attempt)
    assert spread != Backoff(spread=0.3, seed="b").delay(attempt)


def test_what_the_server_asks_for_is_waited_for_up_to_the_cap() -> None:
    backoff = Backoff(base=1.0, cap=10.0, spread=0.0)
    assert [backoff.delay(0, asked) for asked in (None, 0.5, 4.0, 3600.0)] == [1, 1, 4, 10]


def test_clients_that_a_server_asks_for_the_same_come_back_apart() -> None:
    """Each no earlier than it asked for, and later by at most the spread; a cap on what it asks for does not unite them."""
    for asked, wanted in ((4.0, 4.0), (3600.0, 10.0)):
        delays = [
            Backoff(cap=10.0, spread=0.3, seed=f"{each}").delay(0, asked) for each in range(100)
        ]
        assert min(delays) >= wanted
        assert max(delays) <= 1.3 * wanted
        assert len({round(each / wanted, 2) for each in delays}) > 10
