"""What runs leave, without a run: one that is counted by hand, and drawn ones of any size."""

import random
from array import array
from typing import Any

from pumice.traces.records import JobRecord, Past, PodRuns, QueueSamples, Samples
from pumice.traces.trace import TraceJob

CAUSES = ("nodes", "its queue", "the <order>")
OUTCOMES: Any = ("Completed", "Completed", "Completed", "Failed", "Running", "Waiting", "Refused")


def record(
    name: str, runs: list[PodRuns] | None = None, *, cpu: int = 1000, **fields: Any
) -> JobRecord:
    """The record of a job; fields of its job and of the record may follow."""
    own = {key: fields.pop(key) for key in JobRecord.__struct_fields__ if key in fields}
    replicas = fields.setdefault("replicas", 1)
    job = TraceJob(
        **{"name": name, "submit": 0.0, "duration": 10.0, "min": replicas, "requests": {}, **fields}
    )
    return JobRecord(job=job, number=0, requests=[{"cpu": cpu}], runs=runs or [], **own)


def nothing() -> Past:
    """A run without a job, on one node."""
    return Past([], Samples(), ["n0"], {"cpu": [4000]}, ["cpu"], 0.0, 0, 0.0, True, 0)


def small() -> Past:
    """Two nodes of 4 cpu; `a` runs at once, `b` is evicted once, `c` waits for all 8 cpu, `d` is refused."""
    jobs = [
        record(
            "a",
            [PodRuns(0, 4, 0.0, 10.0, "completed")],
            replicas=4,
            queue="red",
            start=0.0,
            end=10.0,
            outcome="Completed",
        ),
        record(
            "b",
            [PodRuns(1, 2, 2.5, 5.0, "evicted"), PodRuns(1, 2, 10.0, 30.0, "completed")],
            cpu=2000,
            submit=2.5,
            duration=20.0,
            replicas=2,
            queue="blue",
            priority=5,
            start=2.5,
            end=30.0,
            outcome="Completed",
            evictions=2,
            broken=1,
            lost={0: 5.0},
        ),
        record(
            "c",
            [PodRuns(0, 4, 30.0, 40.0, "completed"), PodRuns(1, 4, 30.0, 40.0, "completed")],
            submit=3.0,
            replicas=8,
            queue="red",
            start=30.0,
            end=40.0,
            outcome="Completed",
        ),
        record("d", queue="blue", submit=4.0, outcome="Refused", reason="queue blue is closed"),
    ]
    samples = Samples(
        moments=array("d", [0.0, 2.5, 3.0, 5.0, 10.0, 30.0, 40.0]),
        used={"cpu": array("q", [4000, 8000, 8000, 4000, 4000, 8000, 0])},
        unusable={"cpu": array("q", [0, 0, 0, 4000, 4000, 0, 0])},
        capacity={"cpu": array("q", [8000] * 7)},
        waiting={
            "nodes": array("q", [0, 0, 1, 2, 1, 0, 0]),
            "its queue": array("q", [0] * 7),
        },
        queues={
            "red": QueueSamples(
                {"cpu": array("q", [4000, 4000, 4000, 4000, 0, 8000, 0])},
                {"cpu": array("q", [4000] * 7)},
                array("q", [0, 0, 1, 1, 1, 0, 0]),
            ),
            "blue": QueueSamples(
                {"cpu": array("q", [0, 4000, 4000, 0, 4000, 0, 0])},
                {"cpu": array("q", [0, 4000, 4000, 4000, 4000, 0, 0])},
                array("q", [0, 0, 0, 1, 0, 0, 0]),
            ),
        },
    )
    capacity = {"cpu": [4000, 4000]}
    return Past(jobs, samples, ["n0", "n1"], capacity, ["cpu"], 40.0, 6, 0.25, True, 1)


def drawn(
    seed: int, jobs: int, nodes: int = 3, moments: int = 40, queues: int = 3, name: str = "j"
) -> Past:
    """A run that no scheduler made, but that has something of everything."""
    chance = random.Random(seed)
    span = jobs * 7.3

    def story(number: int) -> JobRecord:
        submit = chance.uniform(0, span)
        outcome = chance.choice(OUTCOMES)
        start = None if outcome in ("Waiting", "Refused") else submit + chance.uniform(0, 50)
        duration = chance.choice([0.0, chance.uniform(0, 100), chance.uniform(0, 5)])
        end = None if start is None or outcome == "Running" else start + duration * 1.25
        how: Any = {"Failed": "failed", "Running": "running"}.get(outcome, "completed")
        runs = []
        if start is not None:
            at = chance.randrange(nodes)
            runs = [PodRuns(at, chance.randint(1, 4), start, end, how)]
            if chance.random() < 0.2:
                runs.insert(0, PodRuns((at + 1) % nodes, 1, start, start + duration / 2, "evicted"))
        return record(
            f"{name}{number}",
            runs,
            cpu=chance.choice([500, 1000, 3000]),
            submit=submit,
            duration=chance.choice([duration, None]),
            replicas=chance.randint(1, 9),
            queue=f"q{chance.randrange(queues)}",
            user=chance.choice(["", "ada", "bob"]),
            priority=chance.choice([0, 10, 9, "high"]),
            start=start,
            end=end,
            outcome=outcome,
            evictions=len(runs) // 2,
            lost={0: duration / 2} if len(runs) > 1 else {},
            reason="it waits" if outcome == "Waiting" else "",
        )

    def column(most: int) -> "array[int]":
        return array("q", [chance.randint(0, most) for _ in range(moments)])

    records = sorted((story(number) for number in range(jobs)), key=lambda each: each.job.submit)
    times = sorted(chance.uniform(0, span + 200) for _ in range(moments))
    resources = ["cpu", "nvidia.com/gpu"]
    samples = Samples(
        array("d", times),
        {each: column(5000) for each in resources},
        {each: column(2000) for each in resources},
        {each: array("q", [9000] * moments) for each in resources},
        {cause: column(5) for cause in CAUSES},
        {
            f"q{number}": QueueSamples(
                {each: column(3000) for each in resources},
                {each: column(4000) for each in resources} if number else {},
                column(2),
            )
            for number in range(queues)
        },
    )
    names = [f"n{number}" for number in range(nodes)]
    capacity = {each: [3000] * nodes for each in resources}
    return Past(records, samples, names, capacity, resources, span + 200, 7, 0.5, True, 2)
