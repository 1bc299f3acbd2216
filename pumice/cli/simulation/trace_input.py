"""What a run of a trace starts from: the files of `--trace`, `--nodes` and `--state`, put together."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from pumice.api import kinds
from pumice.api.fields import plain
from pumice.api.kinds import Kind
from pumice.api.messages import counted, listed
from pumice.api.meta import Raw
from pumice.api.names import dns_subdomain_problem
from pumice.api.nodes import Node, values_of
from pumice.cli.exits import UserError
from pumice.cli.files.checking import ManifestChecker
from pumice.cli.files.contents import read_bytes
from pumice.cli.files.manifests import Manifest, Source, named, read
from pumice.cli.output import note
from pumice.cli.simulation.simulation_input import SimulationInput
from pumice.cli.simulation.trace_options import TraceOptions
from pumice.scheduler.simulate import ClusterObjects
from pumice.traces.formats import is_openb_nodes, read_trace
from pumice.traces.node_spec import WrittenNodes, asked_resources, nodes_of
from pumice.traces.openb import read_openb_nodes
from pumice.traces.submission import Admitted, with_named
from pumice.traces.trace import Trace, TraceError
from pumice.webhook.rules.rule import RuleSettings

_SHOWN = 5
"""Skipped lines that are named."""
_NAMES = 200
"""Bytes of a list of names."""


class TraceInput:
    """A trace and the cluster that it is submitted to.

    Attributes:
        trace: The trace.
        objects: The objects of the cluster.
        ample: Resources that its nodes have without limit.
        title: The file of the trace.
    """

    def __init__(self, options: TraceOptions, state: Sequence[str]) -> None:
        """Read all files, and report on stderr what is left out of them.

        Raises:
            UserError: A file cannot be read, or there are no nodes.
        """
        names = options.trace or []
        if [*names, *state].count("-") > 1:
            raise UserError("stdin (-) can be read only once")
        files = [(name, read_bytes(name)) for name in names]
        self.title = next((name for name, data in files if not is_openb_nodes(data)), names[0])
        try:
            trace = read_trace(files, options.format)
        except TraceError as error:
            raise UserError(plain(str(error))) from None
        self.trace = trace = _in_one_queue(trace, options.queue)
        _report(trace, self.title)
        manifests = named(read(state)) if state else []
        self._given = SimulationInput.of(each for each in manifests if not _is_job(each))
        if ignored := sum(_is_job(each) for each in manifests):
            note(
                f"left out {counted(ignored, 'Job')} of --state: only those of the trace are submitted"
            )
        self._state = manifests
        self.objects = self._joined()
        written = self.nodes(options.nodes) if options.nodes else WrittenNodes(self.objects.nodes)
        nodes, self.ample = written
        if not nodes:
            hint = trace.nodes_hint or "16x4cpu"
            why = " (the header of the trace suggests these)" if trace.nodes_hint else ""
            raise UserError(f"no nodes: add them, for example --nodes {hint}{why}, or in --state")
        self.objects = self.objects_on(nodes)
        self._checker = ManifestChecker(RuleSettings(), [*manifests, *self._named()])
        self._name_missing_classes()

    def nodes(self, text: str, option: str = "--nodes") -> WrittenNodes:
        """Nodes of a short text, or of the file of nodes of `openb`.

        Raises:
            UserError: They cannot be read.
        """
        where = option
        try:
            if Path(text).is_file() and is_openb_nodes(data := read_bytes(text)):
                where = f"{option} {text}:"
                return WrittenNodes(read_openb_nodes(data))
            return nodes_of(text, asked_resources(self.trace.jobs))
        except (TraceError, OSError, ValueError) as error:
            raise UserError(plain(f"{where} {error}")) from None

    def admit(self, job: Raw) -> Admitted:
        """Admission of a new Job, as a cluster with these objects would."""
        return self._given.runtime_classes.judged(Manifest(job, Source("trace")), self._checker)

    def admitted_pod(self, pod: Raw) -> Raw:
        """A new pod as an API server stores it."""
        return self._given.runtime_classes.admitted(pod)

    def objects_on(self, nodes: list[Node]) -> ClusterObjects:
        """The objects of the cluster with other nodes, and without pods that run on none of them."""
        known = {node.metadata.name for node in nodes}
        pods = self.objects.pods
        stay = [pod for pod in pods if not pod.spec.node_name or pod.spec.node_name in known]
        if left := len(pods) - len(stay):
            note(f"left out {counted(left, 'pod')} on other nodes")
        return replace(self.objects, nodes=nodes, pods=stay)

    def _joined(self) -> ClusterObjects:
        """Objects of --state, and those of the trace of kinds that --state has none of."""
        given, own = self._given.objects, self.trace.objects
        names = own.__struct_fields__
        return ClusterObjects(
            **{name: getattr(given, name) or getattr(own, name) for name in names}
        )

    def _name_missing_classes(self) -> None:
        """Say which PriorityClasses jobs name that nothing defines."""
        known = values_of(self.objects.priority_classes)
        missing = {each.priority for each in self.trace.jobs if isinstance(each.priority, str)}
        if names := sorted(missing - known.keys()):
            note(
                plain(
                    f"{self.title}: PriorityClass {listed(names, most=_NAMES)} is not given, and counts as 0: add it to --state"
                )
            )

    def _named(self) -> Iterable[Manifest]:
        """Queues and PriorityClasses that are not in --state, as manifests for admission."""
        objects = with_named(self.trace, self.objects)
        found: list[tuple[Kind, Sequence[Any]]] = [
            (kinds.QUEUE, objects.queues),
            (kinds.PRIORITY_CLASS, objects.priority_classes),
        ]
        known = {manifest.identity for manifest in self._state}
        for kind, each_of in found:
            for each in each_of:
                raw = msgspec.to_builtins(each) | kind.type_meta
                manifest = Manifest(raw, Source("trace"))
                if manifest.identity not in known:
                    yield manifest


def _in_one_queue(trace: Trace, queue: str | None) -> Trace:
    if queue is None:
        return trace
    if problem := dns_subdomain_problem(queue):
        raise UserError(plain(f"--queue: {problem}"))
    jobs = []
    for job in trace.jobs:
        manifest = job.manifest
        if manifest is not None:
            manifest = manifest | {"spec": (manifest.get("spec") or {}) | {"queue": queue}}
        jobs.append(replace(job, queue=queue, manifest=manifest))
    return replace(trace, jobs=jobs)


def _report(trace: Trace, name: str) -> None:
    """Say what was left out, and what a user should know."""
    for each in trace.skipped[:_SHOWN]:
        note(plain(f"{name}: {trace.unit} {each.line}: skipped: {each.why}"))
    if len(trace.skipped) > _SHOWN:
        note(f"{name}: {len(trace.skipped) - _SHOWN:,} more {trace.unit}s skipped")
    for remark in trace.remarks:
        note(plain(f"{name}: {remark}"))


def _is_job(manifest: Manifest) -> bool:
    return kinds.of_object(manifest.object) == kinds.JOB
