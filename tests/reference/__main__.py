"""Record where the real kube-scheduler lets drawn pods run.

    python -m tests.reference [--clusters N] [--seed SEED]

Writes `tests/cases/scheduler/kubernetes_rules.json.gz`, which tests compare Pumice's own answers with.
"""

import argparse
import sys
import time

from tests.reference.clusters import PODS, draw
from tests.reference.recorder import recording
from tests.reference.records import FILE, write
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.start import started

__all__ = ["main"]

CLUSTERS = 100


def main() -> int:
    """Record, with progress on stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference", description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--seed", default="kubernetes")
    chosen = parser.parse_args()
    begun = time.monotonic()
    records = []
    with started(Builder().ensure(), kwok=False) as plane, recording(plane) as recorder:
        for number in range(chosen.clusters):
            records.append(recorder.record(draw(chosen.seed, number)))
            if number % 10 == 9:
                seconds = time.monotonic() - begun
                print(f"{seconds:6.1f} s  {number + 1} clusters", file=sys.stderr)
    size = write(records)
    print(
        f"{chosen.clusters * PODS} pods in {time.monotonic() - begun:.0f} s: {FILE}, {size / 1000:.0f} kB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
