"""A good tenant's gangs alone and beside a hostile tenant, on a real control plane.

    python -m benchmarks.hostile [--rounds N] [--gangs N] [--limit SECONDS] [--json FILE]

Each round has a control plane of its own, with the components as the chart installs them and `tests.support.beside.NODES` nodes
that kwok simulates. Both tenants are users bound to the ClusterRole `edit` in a namespace. The good one submits gangs of two pods,
one after the other; each is timed from its submission until both pods are bound. First it is alone; then the hostile tenant
submits everything in `tests/support/hostile.py` at once. Everything shares the machine with the control plane.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.report import MACHINE, spread, write
from tests.support.beside import Beside, measured
from tests.support.hostile import Sizes
from tests.support.installation import COMPONENTS


def one_round(options: argparse.Namespace) -> Beside:
    """Both tenants on a control plane of their own."""
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder), Sizes(), alone=options.gangs, limit=options.limit)


def table(rounds: Sequence[Beside]) -> list[tuple[str, str, str]]:
    """Lines of the table: what, figures, aim."""
    medians = [statistics.median(each.alone) for each in rounds]
    later = [max(each.beside) - alone for each, alone in zip(rounds, medians, strict=True)]
    lines = [
        ("a gang alone, s", spread([s for each in rounds for s in each.alone], 2), ""),
        ("a gang beside, s", spread([s for each in rounds for s in each.beside], 2), ""),
        ("the slowest beside, later than the median alone, s", spread(later, 2), "<= 2"),
        ("hostile pods, submitted until created, s", spread([e.seconds for e in rounds], 0), ""),
    ]
    for name in COMPONENTS:
        vitals = [each.vitals[name] for each in rounds]
        growth = [each.growth(name) for each in rounds]
        lines += [
            (f"{name}: longest answer of /healthz, s", spread([v.longest for v in vitals], 2), ""),
            (f"{name}: memory before, MiB", spread([v.before for v in vitals], 0), ""),
            (f"{name}: most memory beside, MiB", spread([v.peak for v in vitals], 0), ""),
            ("  by that before", spread(growth, 2), "<= 2"),
        ]
        if name != "webhook":
            lease = f"pumice-{name}"
            renewals = [each.renewals[lease] for each in rounds]
            lost = sum(len(each.holders[lease]) - 1 + each.vitals[name].lost for each in rounds)
            lines += [
                ("  longest time between renewals, s", spread(renewals, 1), "< 10"),
                ("  Leases lost", str(lost), "0"),
            ]
    ended = sum(vitals.ended for each in rounds for vitals in each.vitals.values())
    return [*lines, ("components that ended", str(ended), "0")]


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gangs", type=int, default=20, help="gangs that are submitted alone")
    parser.add_argument("--limit", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rounds = [one_round(options) for _ in range(options.rounds)]
    created = ", ".join(f"{each.created} of {each.wanted}" for each in rounds)
    print(f"gangs of two pods; hostile pods created: {created}")
    for what, figures, aim in table(rounds):
        print(f"{what:<60} {figures:>24} {aim:>8}")
    print("last round, what the hostile tenant was answered:")
    for answer, number in rounds[-1].answers.items():
        print(f"  {answer:<40} {number}")
    print(MACHINE)
    write(options.json, [asdict(each) for each in rounds], gangs=options.gangs)


if __name__ == "__main__":
    main()
