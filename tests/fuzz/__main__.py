"""Have admission answer mutated reviews, and say what became of them.

    python -m tests.fuzz [COUNT] [--seed SEED]

Exit code 1 when an answer was not a proper one, or a rule raised.
"""

import argparse
import sys
import time

from tests.fuzz.judging import Tally
from tests.fuzz.running import run

__all__ = ["main"]

_SHOWN = 10


def main() -> int:
    """Run, with progress on stderr and a summary on stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", default="fuzz")
    chosen = parser.parse_args()
    started = time.monotonic()

    def told(done: int, tally: Tally) -> None:
        rate = done / (time.monotonic() - started)
        left = (chosen.count - done) / rate
        bad = len(tally.failures) + tally.crashes.total()
        end = "\r" if sys.stderr.isatty() and done < chosen.count else "\n"
        if end == "\r" or done * 20 // chosen.count != (done - 1) * 20 // chosen.count:
            print(
                f"{done:>9,} of {chosen.count:,} answered, {rate:,.0f}/s, {left:,.0f} s left, {bad} bad ",
                end=end,
                file=sys.stderr,
            )

    tally = run(chosen.seed, chosen.count, told)
    _report(chosen.count, time.monotonic() - started, tally)
    return 1 if tally.failures or tally.crashes else 0


def _report(count: int, seconds: float, tally: Tally) -> None:
    print(f"{count:,} reviews answered in {seconds:,.0f} s")
    for outcome, times in tally.outcomes.most_common():
        print(f"  {outcome:<10}{times:>10,}  {times / count:6.1%}")
    print(f"  refused by {len(tally.rules)} rules")
    print(f"  slowest {1000 * tally.slowest[0]:,.0f} ms: {tally.slowest[1]}")
    for crash, times in sorted(tally.crashes.items())[:_SHOWN]:
        print(f"raised {times} times: {crash}")
    for failure in tally.failures[:_SHOWN]:
        print(failure)
    print(f"{len(tally.failures)} answers were not proper, {tally.crashes.total()} rules raised")


if __name__ == "__main__":
    sys.exit(main())
