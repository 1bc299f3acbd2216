"""The measures of a run once more: slowly, from the definitions of docs/simulation.md, on plain dicts and fractions.

Nothing of `pumice.traces` is used, and every sum goes over single jobs, pods and steps. The last step cuts numbers to six decimals.
"""

import math
from fractions import Fraction
from typing import Any

import msgspec

Data = dict[str, Any]


def recomputed(past: Any) -> tuple[list[Data], Data]:
    """The numbers of each job and the summary, as they are told."""
    jobs, summary = _exact(past)
    return [_told(job) for job in jobs], _told(summary)


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(part) for name, part in value.items()}
    return float(f"{value:.6f}") if isinstance(value, float) else value


def _exact(past: Any) -> tuple[list[Data], Data]:
    data: Data = msgspec.to_builtins(past, enc_hook=list)
    jobs = [_job(record, data["nodes"]) for record in data["jobs"]]
    records = data["jobs"]
    begin = min((record["job"]["submit"] for record in records), default=0.0)
    ends = [record["end"] for record in records if record["end"] is not None]
    all_over = all(record["outcome"] in ("Completed", "Failed", "Refused") for record in records)
    end = max(ends) if ends and all_over else max(begin, data["end"])
    samples, resources = data["samples"], data["resources"]
    steps = _steps(samples["moments"], begin, end)

    def integral(column: list[int]) -> Fraction:
        return sum(
            (Fraction(value) * step for value, step in zip(column, steps, strict=True)), Fraction()
        )

    none = [0] * len(steps)
    capacity = {name: integral(samples["capacity"].get(name, none)) for name in resources}

    def part(amount: Fraction, resource: str) -> float | None:
        return float(amount / capacity[resource]) if capacity[resource] else None

    def of_capacity(columns: Data) -> Data:
        return {name: part(integral(columns.get(name, none)), name) for name in resources}

    work = [_work(record, Fraction(end)) for record in records]
    goodput = {
        name: part(
            sum(
                (
                    requests.get(name, 0) * seconds
                    for record, of_tasks in zip(records, work, strict=True)
                    if record["outcome"] != "Failed"
                    for requests, seconds in zip(record["requests"], of_tasks, strict=True)
                ),
                Fraction(),
            ),
            name,
        )
        for name in resources
    }
    outcomes = ("Completed", "Failed", "Running", "Waiting", "Refused", "Unreached")
    summary: Data = {
        "jobs": {
            outcome.lower(): len([1 for record in records if record["outcome"] == outcome])
            for outcome in outcomes
        },
        "is_whole": data["is_whole"],
        "makespan": max(ends) - begin if ends else None,
        "utilization": of_capacity(samples["used"]),
        "fragmentation": of_capacity(samples["unusable"]),
        "goodput": goodput,
        **{
            name: _distribution([job[name] for job in jobs])
            for name in ("wait", "turnaround", "slowdown", "bounded_slowdown")
        },
        "wait_by": {
            "queue": _by(records, jobs, lambda job: job["queue"]),
            "size": _by(records, jobs, lambda job: _power_of_two(job["replicas"])),
            "priority": _by(records, jobs, lambda job: job["priority"]),
        },
        "jain": _jain(records, work, Fraction(end)),
        "below_deserved": {
            name: _below(queue, steps)
            for name, queue in sorted(samples["queues"].items())
            if queue["deserved"]
        },
        "evictions": sum(record["evictions"] for record in records),
        "broken_gangs": sum(record["broken"] for record in records),
        "lost_hours": {
            name: float(
                sum(
                    (
                        Fraction(seconds) * record["requests"][task].get(name, 0)
                        for record in records
                        for task, seconds in record["lost"].items()
                    ),
                    Fraction(),
                )
                / 1000
                / 3600
            )
            for name in resources
        },
        "skipped": data["skipped"],
        "cost": {"cycles": data["cycles"], "decision_seconds": data["decision_seconds"]},
    }
    return jobs, summary


def _job(record: Data, nodes: list[str]) -> Data:
    job, start, end = record["job"], record["start"], record["end"]
    over = start is not None and end is not None
    turnaround: Any = end - job["submit"] if over else None
    length: Any = None
    if over:
        length = job["duration"] if job["duration"] is not None else end - start
    return {
        "name": job["name"],
        "namespace": job["namespace"],
        "queue": job["queue"],
        "outcome": record["outcome"],
        "submit": job["submit"],
        "start": start,
        "end": end,
        "wait": start - job["submit"] if start is not None else None,
        "run": end - start if over else None,
        "turnaround": turnaround,
        "slowdown": turnaround / length if length else None,
        "bounded_slowdown": max(1.0, turnaround / max(10.0, length)) if over else None,
        "evictions": record["evictions"],
        "nodes": [
            name
            for index, name in enumerate(nodes)
            if any(runs["node"] == index and runs["how"] != "evicted" for runs in record["runs"])
        ],
        "reason": record["reason"],
    }


def _steps(moments: list[float], begin: float, end: float) -> list[Fraction]:
    """How long each sample holds within the period."""
    found = []
    for index, moment in enumerate(moments):
        until = moments[index + 1] if index + 1 < len(moments) else end
        found.append(max(Fraction(min(until, end)) - Fraction(max(moment, begin)), Fraction()))
    return found


def _work(record: Data, end: Fraction) -> list[Fraction]:
    """Of each task."""
    totals = [-Fraction(record["lost"].get(task, 0)) for task in range(len(record["requests"]))]
    for runs in record["runs"]:
        until = end if runs["end"] is None else min(end, Fraction(runs["end"]))
        for _ in range(runs["pods"]):
            totals[runs["task"]] += max(until - Fraction(runs["start"]), Fraction())
    return totals


def _distribution(values: list[Any]) -> Data:
    known = sorted(value for value in values if value is not None)
    found: Data = {"count": len(known)}
    found["mean"] = math.fsum(known) / len(known) if known else None
    for percent in (50, 95, 99):
        found[f"p{percent}"] = next(
            (
                value
                for value in known
                if 100 * len([1 for other in known if other <= value]) >= percent * len(known)
            ),
            None,
        )
    found["max"] = known[-1] if known else None
    return found


def _by(records: list[Data], jobs: list[Data], key: Any) -> Data:
    keys = {str(key(record["job"])) for record in records}
    return {
        name: _distribution(
            [
                job["wait"]
                for record, job in zip(records, jobs, strict=True)
                if str(key(record["job"])) == name
            ]
        )
        for name in keys
    }


def _power_of_two(number: int) -> int:
    power = 1
    while power < number:
        power *= 2
    return power


def _jain(records: list[Data], work: list[list[Fraction]], end: Fraction) -> float | None:
    shares = []
    for tenant in {_tenant(record["job"]) for record in records}:
        served = present = Fraction()
        for record, seconds in zip(records, work, strict=True):
            job = record["job"]
            if _tenant(job) == tenant and record["outcome"] not in ("Refused", "Unreached"):
                until = end if record["end"] is None else Fraction(record["end"])
                present += job["replicas"] * (until - Fraction(job["submit"]))
                served += sum(seconds) + sum(map(Fraction, record["lost"].values()))
        if present > 0:
            shares.append(served / present)
    if not any(shares):
        return None
    return float(sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares)))


def _tenant(job: Data) -> tuple[str, str]:
    return ("user", job["user"]) if job["user"] else ("queue", job["queue"])


def _below(queue: Data, steps: list[Fraction]) -> float:
    total = Fraction()
    for index, step in enumerate(steps):
        deserved = {
            name: column[index] for name, column in queue["deserved"].items() if column[index]
        }
        used = {
            name: queue["used"][name][index] if name in queue["used"] else 0 for name in deserved
        }
        if (
            queue["waiting"][index]
            and deserved
            and all(used[each] < deserved[each] for each in deserved)
        ):
            total += step
    return float(total)
