"""Manifests that are as large as a review may be, and shaped to be dear to judge.

Nobody writes them by accident. Each is made for a size, so that whoever looks at two sizes sees how the
cost grows.

    python -m tests.fuzz.hostile [BYTES] [NAME…]
"""

import sys
import time
from collections.abc import Iterator

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.fuzz.hostile_containers import CONTAINERS
from tests.fuzz.hostile_jobs import JOBS
from tests.fuzz.hostile_kinds import OTHERS
from tests.fuzz.hostile_pods import PODS
from tests.fuzz.hostile_shapes import Maker, job
from tests.fuzz.hostile_volumes import VOLUMES
from tests.kit.builders import queue
from tests.unit.webhook.reviewing import request, reraise, review

LARGEST = 3 * 2**20
"""Bytes of a review for which the command line makes manifests."""

HOSTILE: dict[str, tuple[str, Maker]] = {
    **{name: ("/jobs/validate", make) for name, make in {**JOBS, **CONTAINERS, **VOLUMES, **PODS}.items()},
    "tasks, mutated": ("/jobs/mutate", lambda n: job(*({"name": f"t{i}", "template": {}} for i in range(n)))),
    "volumes, mutated": ("/jobs/mutate", lambda n: job(volumes=[{"mountPath": "/a"} for _ in range(n)])),
    "plugins, mutated": ("/jobs/mutate", lambda n: job(plugins={f"p{i}": [] for i in range(n)})),
    "topology, mutated": ("/jobs/mutate", JOBS["topology of nobody"]),
    "texts, mutated": ("/jobs/mutate", JOBS["tasks of texts"]),
    **OTHERS,
}  # fmt: skip
"""Every sort by its name: the endpoint, and what makes an object with so many items."""


def hostile_admission() -> Admission:
    """Admission in a cluster of a hundred queues, whose rules must not raise."""
    queues = [queue("default"), queue("research"), *(queue(f"team-{i}") for i in range(100))]
    return Admission(AdmissionSettings(), Snapshot.of(queues), builtin(), on_crash=reraise)


def hostile_review(name: str, items: int, *, change: bool = False) -> tuple[str, bytes]:
    """A review of one sort.

    Args:
        name: Key of `HOSTILE`.
        items: How many of what makes it hostile.
        change: An update of the same object that is not hostile, instead of a new object.

    Returns:
        The endpoint and the body.
    """
    path, make = HOSTILE[name]
    obj = make(items)
    if change:
        return path, review(request(path, obj, "UPDATE", make(1)))
    return path, review(request(path, obj))


def of_bytes(name: str, size: int) -> int:
    """How many items a review of nearly so many bytes has."""
    small, large = (len(hostile_review(name, items)[1]) for items in (8, 136))
    each = (large - small) / 128
    return min(int((size - small) / each), 10**6) if each else 1


def _measured(names: list[str], size: int) -> Iterator[tuple[float, str]]:
    for name in names:
        items = of_bytes(name, size)
        for change in (False, True):
            path, body = hostile_review(name, items, change=change)
            admission = hostile_admission()
            started = time.process_time()
            answer = admission.answer(path, body)
            seconds = time.process_time() - started
            text = (
                f"{seconds * 1000:8.0f} ms  {len(body) / 2**20:5.2f} MiB  {answer.outcome:8} "
                f"{len(answer.body) / 1024:8.0f} KiB  {items:7}  "
                f"{'update' if change else 'create'}  {name}  {answer.codes[:3]}"
            )
            yield seconds, text


def main() -> None:
    """Print what each sort costs, the dearest last."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else LARGEST
    rows = []
    for row in _measured(sys.argv[2:] or list(HOSTILE), size):
        print(row[1], file=sys.stderr, flush=True)
        rows.append(row)
    print("\n".join(text for _, text in sorted(rows)))


if __name__ == "__main__":
    main()
