"""Pumice's own traces: a job a line, as JSON objects or as CSV with a header.

Fields: `submit` (seconds, or a time as RFC 3339 has it), `duration` (seconds; absent or empty if it never ends), `name`, `queue`,
`priority` (a number or a PriorityClass), `replicas`, `min`, `requests`, `user`, `topology`, `manifest`, and `fails`.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from pumice.api.kinds import JOB
from pumice.api.messages import counted
from pumice.api.meta import parse_time
from pumice.api.names import dns_subdomain_problem
from pumice.traces.amounts import checked, read_amounts, resource
from pumice.traces.job_list import (
    SECONDS_LIMIT,
    BadLineError,
    JobList,
    by_name,
    decoded,
    label,
    number,
    whole,
    written_lines,
)
from pumice.traces.trace import REPLICAS_LIMIT, Trace, TraceError, TraceJob

FIELDS = (
    "submit", "duration", "name", "queue", "priority", "replicas", "min", "requests",
    "user", "topology", "manifest", "fails",
)  # fmt: skip

_PRIORITY = 1_000_000_000
"""Largest value of a PriorityClass of a user."""

_WHOLE = re.compile(r"([+-]?[0-9]{1,20})(?:\.0*)?", re.ASCII)
"""A whole number, also as tables are written in which a column has fractions or empty cells: `100.0`."""
_ONE_CPU = {"cpu": "1"}
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Fields = dict[str, Any]


def read_json_lines(data: bytes) -> Trace:
    """Read a trace of JSON lines.

    Raises:
        TraceError: It has too many lines, or too many bad ones.
    """
    decoder = msgspec.json.Decoder(Fields)
    jobs = _OwnJobs()
    for place, line in written_lines(data):
        jobs.lines += 1
        try:
            fields = decoder.decode(decoded(line))
        except msgspec.DecodeError as error:
            jobs.skip(place, f"not a JSON object: {error}")
        except (BadLineError, RecursionError) as error:
            jobs.skip(place, str(error))
        else:
            jobs.read(place, {name: each for name, each in fields.items() if each is not None})
    return jobs.trace()


def read_csv(data: bytes) -> Trace:
    """Read a trace of CSV, with the names of the fields in the first line.

    Raises:
        TraceError: The header lacks `submit`; it has too many lines, or too many bad ones.
    """
    jobs = _OwnJobs()
    for place, row in csv_rows(data, ("submit",), jobs):
        jobs.read(place, {name: each for name, each in row.items() if each})
    return jobs.trace()


def csv_rows(
    data: bytes, needed: tuple[str, ...], jobs: JobList
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of CSV by the names of their columns; bad lines are skipped.

    Raises:
        TraceError: The header cannot be read or lacks a column, or there are too many lines.
    """
    header: list[str] | None = None
    for place, line in written_lines(data):
        cells, problem = [], ""
        try:
            cells = next(csv.reader([decoded(line)], strict=True))
        except (BadLineError, csv.Error) as error:
            problem = str(error).partition(" - ")[0]  # behind that, advice to programmers
        if header is None:
            if problem:
                raise TraceError(f"line {place}: {problem}")
            header = [cell.strip().lower() for cell in cells]
            if lacking := [name for name in needed if name not in header]:
                raise TraceError(
                    f"line {place}: the header has no column {lacking[0]}; expected {', '.join(needed)}"
                )
            (name, times), *_ = Counter(filter(None, header)).most_common(1)
            if times > 1:
                raise TraceError(f"line {place}: the header names {name[:60]} twice")
            continue
        if not problem and len(cells) != len(header):
            problem = f"{counted(len(cells), 'column')}; the header has {len(header)}"
        jobs.lines += 1
        if problem:
            jobs.skip(place, problem)
        else:
            yield place, dict(zip(header, map(str.strip, cells), strict=True))


class _OwnJobs(JobList):
    """The jobs of a trace in Pumice's own format."""

    def __init__(self) -> None:
        super().__init__()
        self._dated: set[bool] = set()
        self._unknown: set[str] = set()

    def read(self, place: int, fields: Fields) -> None:
        """Read the fields of a line; those that are there have a value."""
        try:
            job = self._job(fields)
            self.add(job, (by_name(job.name), 0 if job.name else place))
        except (BadLineError, ValueError) as error:
            self.skip(place, str(error))
            return
        self._unknown.update(fields.keys() - FIELDS - {""} if len(fields) < 100 else ())

    def _job(self, fields: Fields) -> TraceJob:
        manifest = _object(fields, "manifest")
        metadata, spec = (_part(manifest, part) for part in ("metadata", "spec"))
        if manifest is not None:
            _check_kind(manifest)
            fields = _with_manifest(fields, spec)
        replicas = whole(_scalar(fields, "replicas", 1), "replicas", 1, REPLICAS_LIMIT)
        least = whole(_scalar(fields, "min", replicas), "min", 1, REPLICAS_LIMIT)
        duration = fields.get("duration")
        user = _text(fields, "user", "")
        return TraceJob(
            name=_text(fields, "name", "") or _text(metadata, "name", ""),
            submit=self._moment(fields),
            duration=None
            if duration is None
            else number(_scalar(fields, "duration", 0), "duration"),
            queue=_text(fields, "queue", "") or "default",
            namespace=label(_text(metadata, "namespace", "")) or label(user) or "default",
            user=user,
            priority=_priority(fields),
            replicas=replicas,
            min=least,
            requests=_requests(fields.get("requests")) if manifest is None else {},
            topology=None if manifest is not None else _object(fields, "topology"),
            manifest=manifest,
            fails=_truth(fields),
        )

    def _moment(self, fields: Fields) -> float:
        if "submit" not in fields:
            raise BadLineError("submit is missing; expected seconds since the trace's zero")
        submit = _scalar(fields, "submit", 0)
        moment = parse_time(submit) if isinstance(submit, str) else None
        try:
            found = number(submit if moment is None else moment, "submit")
        except BadLineError:
            raise BadLineError(
                f"submit is {str(submit)[:40]}; expected seconds from 0 to {SECONDS_LIMIT:g}, or a time such as 2026-01-31T12:00:00Z"
            ) from None
        self._dated.add(moment is not None)
        return found

    def trace(self) -> Trace:
        """The trace; dates become seconds since the first one."""
        if self._unknown:
            names = ", ".join(sorted(self._unknown)[:5])
            self.remarks.append(f"fields that are not read: {names}")
        found = super().trace()
        if len(self._dated) > 1:
            raise TraceError(
                "submit is a date in some lines and a number in others; expected one of both"
            )
        if True in self._dated:
            found.zero = found.jobs[0].submit
            found.jobs = [
                msgspec.structs.replace(job, submit=job.submit - found.zero) for job in found.jobs
            ]
        return found


def _check_kind(manifest: Fields) -> None:
    """Raise BadLineError for a manifest of something else than a Job; what it leaves out is added."""
    for name, expected in JOB.type_meta.items():
        if (found := manifest.get(name, expected)) != expected:
            raise BadLineError(f"manifest.{name} is {str(found)[:60]}; expected {expected}")


def _with_manifest(fields: Fields, spec: Fields) -> Fields:
    """The fields of a line, with what its manifest says in place of them.

    Raises:
        BadLineError: One says something else than the manifest.
    """
    pods, gang = gang_size(spec)
    told: Fields = {
        "queue": _text(spec, "queue", "") or "default",
        "priority": _text(spec, "priorityClassName", "") or "0",
        "replicas": pods,
        "min": gang or pods,
        "topology": _object(spec, "networkTopology"),
        "requests": None,
    }
    for name, each in told.items():
        if name in fields and fields[name] != each and str(fields[name]) != str(each):
            raise BadLineError(
                f"{name} is {str(fields[name])[:40]}, and the manifest stands in its place: leave {name} out"
            )
    return fields | told


def gang_size(spec: Fields) -> tuple[int, int | None]:
    """The pods of a Job's spec, and `minAvailable`; None if it names none."""
    tasks = spec.get("tasks")
    counts = (
        [each.get("replicas", 1) for each in tasks if isinstance(each, dict)]
        if isinstance(tasks, list)
        else []
    )
    pods = sum(each for each in counts if isinstance(each, int) and each > 0)
    least = spec.get("minAvailable")
    return pods or 1, least if isinstance(least, int) and 0 < least <= pods else None


def _scalar(fields: Fields, name: str, default: float) -> str | float:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadLineError(f"{name} is {str(value)[:40]}; expected a number")
    return value


def _text(fields: Fields, name: str, default: str) -> str:
    value = fields.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadLineError(f"{name} is {str(value)[:40]}; expected a string")
    return str(value)


def _object(fields: Fields, name: str) -> Fields | None:
    value = fields.get(name)
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            raise BadLineError(f"{name} is {value[:40]}; expected a JSON object") from None
    if value is not None and not isinstance(value, dict):
        raise BadLineError(f"{name} is {str(value)[:40]}; expected a JSON object")
    return value


def _part(manifest: Fields | None, name: str) -> Fields:
    """A part of a manifest; empty if there is none."""
    value = (manifest or {}).get(name)
    if value is not None and not isinstance(value, dict):
        raise BadLineError(f"manifest.{name} is {str(value)[:40]}; expected a JSON object")
    return value or {}


def _priority(fields: Fields) -> int | str:
    value = _text(fields, "priority", "0")
    number_in = _WHOLE.fullmatch(value)
    if number_in is None and not value.isdecimal() and not dns_subdomain_problem(value):
        return value
    if number_in is None or abs(found := int(number_in[1])) > _PRIORITY:
        raise BadLineError(
            f"priority is {value[:40]}; expected {-_PRIORITY:,} to {_PRIORITY:,}, or the name of a PriorityClass"
        )
    return found


def _requests(value: object) -> dict[str, str]:
    if value is None:
        return dict(_ONE_CPU)
    if isinstance(value, str) and not value.startswith("{"):
        return read_amounts(value)
    amounts = _object({"requests": value}, "requests") or {}
    found: dict[str, str] = {}
    for name, amount in amounts.items():
        if isinstance(amount, bool) or not isinstance(amount, str | int | float):
            raise BadLineError(f"requests: {name[:40]} is {str(amount)[:40]}; expected a quantity")
        if resource(name) in found:
            raise BadLineError(f"requests: {resource(name)[:60]} stands there twice")
        found[resource(name)] = checked(resource(name), amount)
    return found


def _truth(fields: Fields) -> bool:
    value = fields.get("fails", False)
    found = _TRUTHS.get(str(value).lower()[:5])
    if found is None:
        raise BadLineError(f"fails is {str(value)[:40]}; expected true or false")
    return found
