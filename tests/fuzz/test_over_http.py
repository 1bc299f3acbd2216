"""2,500 mutated reviews to a real server: none hangs, none drops its connection, none is answered with 5xx.

`make fuzz` sends four hundred times as many. What rules answer to such reviews `test_reviews` shows, without a server.
"""

from functools import partial
from pathlib import Path

from hypothesis import settings

from tests.fuzz.over_http import fuzzed_over_http
from tests.fuzz.running import run
from tests.fuzz.server import serving
from tests.integration.webhook.serving import Pair


def test_every_review_gets_a_proper_answer_on_a_connection_that_is_kept(tmp_path: Path) -> None:
    """225 where hypothesis is asked to be quick."""
    count = min(50, settings().max_examples) ** 2
    with serving(Pair(tmp_path), tmp_path) as server:
        fuzz = partial(fuzzed_over_http, server.port, server.authority)
        tally = run("http", count, fuzz=fuzz)
        assert not tally.failures, f"{len(tally.failures)} are not, such as {tally.failures[0]}"
        assert not server.crashes
    total = tally.outcomes.total()
    assert total == count
    assert tally.outcomes["allowed"] > total / 10
    assert tally.outcomes["patched"] > total / 50
    assert tally.outcomes["422"] > total / 4
    assert total / 20 < tally.outcomes["400"] < total / 2
