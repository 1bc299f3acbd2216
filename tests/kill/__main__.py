"""Kill the leaders of controller and scheduler once a second, under load, on a real control plane, and now and then a part of that.

    python -m tests.kill [--rounds N] [--each N] [--seed SEED] [--settle SECONDS] [-o json]

Two controllers and two schedulers run as processes with a lease of one second. After ten rounds the webhook, etcd or the API server is
killed, too, and started again; a hostile tenant attacks all the time. Jobs of many kinds complete, fail, restart,
are evicted, scaled, aborted and deleted meanwhile, on nodes that are too small for all of them. Exit code 1 when a node ever had
more requests than room, or a Job, a pod or an object of a Job was not as it should be in the end.
"""

import argparse
import asyncio
import json
import sys
import time

from tests.kill.rounds import Summary, run
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.start import started

__all__ = ["main"]


def main() -> int:
    """Run, with progress on stderr and a summary on stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--each", type=int, default=10, help="rounds between two killed parts")
    parser.add_argument("--seed", default="kill")
    parser.add_argument("--settle", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    chosen = parser.parse_args()
    begun = time.monotonic()

    def report(text: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {text}", file=sys.stderr)

    with started(Builder().ensure()) as plane:
        plane.establish()
        summary = asyncio.run(
            run(
                plane,
                chosen.rounds,
                chosen.seed,
                each=chosen.each,
                settle=chosen.settle,
                report=report,
            )
        )
    print(json.dumps(summary.json(), indent=2) if chosen.output == "json" else _text(summary))
    return 1 if summary.violations else 0


def _text(summary: Summary) -> str:
    jobs = ", ".join(f"{number} {kind}" for kind, number in summary.jobs.items())
    lines = [
        f"{summary.rounds} rounds in {summary.seconds:.0f} s, seed {summary.seed}, and {summary.settled:.0f} s to settle",
        *(
            f"{name}: {summary.killed.get(name, 0)} leaders killed, {summary.stopped.get(name, 0)} stopped; "
            f"longest time without a leader {seconds:.1f} s"
            for name, seconds in summary.leaderless.items()
        ),
        *(
            f"{name}: {number} killed; ready again after {summary.away[name]:.1f} s at most, "
            f"both components led again {summary.leaderless_after[name]:.1f} s later at most"
            for name, number in summary.parts.items()
        ),
        f"a hostile tenant submitted and deleted all that it has {summary.attacks} times",
        f"{summary.pods} pods created, {summary.bound} bound; the fullest node had {summary.fullest:.0%} in use",
        f"Jobs: {jobs}",
        f"{len(summary.violations)} violations",
        *summary.violations,
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
