"""`pumice migrate`: what would change for a cluster of Volcano."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pumice.api.fields import plain
from pumice.api.not_here_yet import HARMS
from pumice.cli import exits
from pumice.cli.options import ClusterOptions, Output, state_option
from pumice.cli.output import Format, note, paint, write, write_json

if TYPE_CHECKING:
    from pumice.cli.migration.findings import MigrationFinding
    from pumice.cli.migration.reading import VolcanoState

HELP = "Find what would change for a cluster of Volcano."

_State = Annotated[
    list[str] | None,
    state_option(
        "Objects from `kubectl get -o yaml`, in place of a cluster. More files may follow."
    ),
]
_Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="CM",
        help="The scheduler's ConfigMap or its file; by default ConfigMap volcano-scheduler-configmap of the cluster or the state.",
    ),
]


def check(
    state: _State = None,
    config: _Config = None,
    output: Output = Format.TEXT,
    *,
    cluster: ClusterOptions,
) -> None:
    """List what would change for a Volcano cluster, with remedies.

    Only reads: Jobs, CronJobs, JobFlows, JobTemplates, queues, PodGroups, pods of other owners, HyperNodes, and the scheduler's ConfigMap. Objects are
    judged as if they were submitted again. The greatest harm comes first: what would not run, then what would run elsewhere or lose pods to others, then what is
    answered in other words. What you may not read is named, and the rest is read.

    Exit code 1: something would not run.
    """
    from pumice.cli.files.configuration import config_text
    from pumice.cli.migration import findings, reading

    given = config_text(config)
    if state and any((cluster.kubeconfig, cluster.context, cluster.server)):
        raise exits.UserError("--state is read instead of a cluster; leave out one of the two")
    seen = reading.of_files(state) if state else _read_cluster(cluster, given is None)
    found = list(findings.of_objects(seen.manifests))
    if given is not None:
        found += findings.of_configuration(str(config), given)
    elif seen.config_map is not None:
        text = reading.config_map_text(seen.config_map)
        found += findings.of_configuration(seen.config_map.identity, text)
    else:
        found.append(findings.without_configuration())
    found.sort(key=lambda each: each.rank)
    if output is Format.JSON:
        write_json(_as_json(found, seen))
    else:
        write("\n".join(_text(found, seen)))
        if seen.not_allowed:
            note(plain(f"not allowed to read: {', '.join(seen.not_allowed)}"))
    exits.finish(exits.REFUSED if any(not each.rank for each in found) else exits.FINE)


def _read_cluster(options: ClusterOptions, config_map: bool) -> "VolcanoState":
    from pumice.cli.live.sessions import run
    from pumice.cli.migration.reading import of_cluster

    async def work() -> "VolcanoState":
        async with options.connect() as client:
            return await of_cluster(client, config_map=config_map)

    return run(work())


VERBS = {
    "check": (
        check,
        (
            "pumice migrate check",
            "pumice migrate check --context production -o json",
            "pumice migrate check --state cluster.yaml --config volcano-scheduler-configmap.yaml",
        ),
    ),
}
"""The commands: function and examples."""


def _as_json(found: "Sequence[MigrationFinding]", seen: "VolcanoState") -> dict[str, object]:
    counts = Counter(each.harm for each in found)
    return {
        "findings": [each._asdict() for each in found],
        "summary": {harm: counts[harm] for harm in HARMS},
        "read": dict(sorted(_read_kinds(seen).items())),
        "notAllowed": seen.not_allowed,
    }


def _read_kinds(seen: "VolcanoState") -> Counter[str]:
    return Counter(str(each.object["kind"]) for each in seen.manifests)


_COLOURS = dict(zip(HARMS, ("red", "yellow", "blue"), strict=True))


def _text(found: "Sequence[MigrationFinding]", seen: "VolcanoState") -> Iterator[str]:
    for harm in HARMS:
        by_object: dict[str, list[MigrationFinding]] = {}
        for each in found:
            if each.harm == harm:
                by_object.setdefault(each.object, []).append(each)
        alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
        for name, of_object in by_object.items():
            alike.setdefault(tuple(each[2:] for each in of_object), []).append(name)
        if alike:
            yield paint(f"{harm[0].upper()}{harm[1:]}:", _COLOURS[harm])
        for names in alike.values():
            more = f" (and {len(names) - 1} more alike)" if len(names) > 1 else ""
            yield plain(f"  {names[0]}{more}")
            yield from _lines(by_object[names[0]])
        if alike:
            yield ""
    kinds = ", ".join(starmap(_counted, sorted(_read_kinds(seen).items())))
    counts = Counter(each.harm for each in found)
    summary = ", ".join(f"{counts[harm]} {harm}" for harm in HARMS)
    yield plain(f"read: {kinds or 'no objects'}; findings: {summary}")


def _counted(kind: str, count: int) -> str:
    """`1 Queue`, `2 Jobs`, `2 NetworkPolicies`, `2 PriorityClasses`."""
    if count == 1:
        return f"1 {kind}"
    if kind.endswith(("s", "x", "ch", "sh")):
        return f"{count} {kind}es"
    ends_so = kind[-1:] == "y" and kind[-2:-1] not in "aeiou"
    return f"{count} {kind[:-1]}ies" if ends_so else f"{count} {kind}s"


def _lines(found: "Sequence[MigrationFinding]") -> Iterator[str]:
    for each in found:
        where = f"{each.path}: " if each.path else ""
        yield plain(f"    {where}{each.message} [{each.code}]")
        if each.remedy:
            yield plain(f"      -> {each.remedy}")
