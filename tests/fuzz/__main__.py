"""Have admission answer mutated reviews, and say what became of them.

    python -m tests.fuzz [COUNT] [--seed SEED]

So many are sent to a server, over connections that are kept. Then a quarter as many are judged without
one, each in the cluster and by the settings that the real review was written for. Exit code 1 when an
answer was not a proper one, a connection ended, or a rule raised.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.judging import Tally, fuzzed
from tests.fuzz.over_http import fuzzed_over_http
from tests.fuzz.running import Fuzz, run
from tests.fuzz.server import serving
from tests.integration.webhook.serving import Pair

__all__ = ["main"]

_SHOWN = 10


def main() -> int:
    """Run, with progress on stderr and a summary on stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", default="fuzz")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, serving(Pair(Path(folder)), Path(folder)) as server:
        print("Over HTTP", flush=True)
        fuzz = partial(fuzzed_over_http, server.port, server.authority)
        bad = _run(chosen.seed, chosen.count, fuzz)
        for crash in server.crashes:
            print(f"raised: {crash}")
            bad = True
    print("Without a server, in clusters of their own", flush=True)
    bad |= _run(chosen.seed, chosen.count // 4, fuzzed)
    return 1 if bad else 0


def _run(seed: str, count: int, fuzz: Fuzz) -> bool:
    """Have reviews answered; whether something was wrong."""
    started = time.monotonic()

    def told(done: int, tally: Tally) -> None:
        rate = done / (time.monotonic() - started)
        left = (count - done) / rate
        bad = len(tally.failures) + tally.crashes.total()
        end = "\r" if sys.stderr.isatty() and done < count else "\n"
        if end == "\r" or done * 20 // count != (done - 1) * 20 // count:
            print(
                f"{done:>9,} of {count:,} answered, {rate:,.0f}/s, {left:,.0f} s left, {bad} bad ",
                end=end,
                file=sys.stderr,
            )

    tally = run(seed, count, told, fuzz=fuzz)
    _report(count, time.monotonic() - started, tally)
    return bool(tally.failures or tally.crashes)


def _report(count: int, seconds: float, tally: Tally) -> None:
    print(f"{count:,} reviews answered in {seconds:,.0f} s")
    for outcome, times in tally.outcomes.most_common():
        print(f"  {outcome:<10}{times:>10,}  {times / count:6.1%}")
    if tally.rules:
        print(f"  refused by {len(tally.rules)} rules")
    print(f"  slowest {1000 * tally.slowest[0]:,.0f} ms: {tally.slowest[1]}")
    for crash, times in sorted(tally.crashes.items())[:_SHOWN]:
        print(f"raised {times} times: {crash}")
    for failure in tally.failures[:_SHOWN]:
        print(failure)
    print(f"{len(tally.failures)} answers were not proper, {tally.crashes.total()} rules raised")


if __name__ == "__main__":
    sys.exit(main())
