"""The contract of job plugins: one function for each promise, which yields problems in words for the plugin's author.

Some promises need no check, because Pumice and not the plugin applies the edits to a pod: the template wins,
unknown fields stay, nothing is there twice, and wiring a pod a second time changes nothing.
"""

import os
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import msgspec

from pumice.api import names
from pumice.api.jobs import Job
from pumice.api.kinds import CONFIG_MAP, NETWORK_POLICY, SECRET, SERVICE, of_object
from pumice.api.meta import Raw
from pumice.plugins import JobPlugin, PodEdits, Registry, Wiring, addresses, dependencies
from pumice.plugins.applied import FAILURES, applied

KINDS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
"""Kinds that the controller watches and may write for plugins."""

_PORTS = range(1, 65536)
_REFERENCE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class TestedPlugin:
    """A plugin under test that has not been called yet.

    Attributes:
        plugin: The plugin.
        registry: It and the built-in plugins.
        state: Its attributes and those of its class, as text.
    """

    def __init__(self, plugin: JobPlugin, registry: Registry) -> None:
        self.plugin = plugin
        self.registry = registry
        self.state = _state(plugin)

    def job(self, manifest: Raw, suffix: str = "") -> Job:
        """The Job after admission, with the plugins that this one requires, and with a suffix at its name."""
        manifest = deepcopy(manifest)
        manifest["metadata"]["name"] += suffix
        plugins = manifest["spec"]["plugins"]
        plugins |= dependencies(plugins, self.registry)
        return msgspec.convert(manifest, Job)

    def asked(self, job: Job, *, backwards: bool = False) -> Raw:
        """All results of the plugin for a Job, by method; `pod_edits` has those of its pods by name.

        Raises:
            PluginError: The plugin fails, or a result has a wrong type.
        """
        one = next(each for each in applied(job, self.registry) if each.plugin is self.plugin)
        methods = (one.check, one.job_annotations, one.objects, one.secrets)
        found: Raw = {method.__name__: method(job) for method in methods}
        edit = one.editor(job)
        pods = [(task, index) for task in job.tasks for index in range(task.size + 1)]
        if backwards:
            pods.reverse()
        found["pod_edits"] = {f"{task.name}-{n}": one.edits(edit, task, n) for task, n in pods}
        return deepcopy(found)


def _state(plugin: JobPlugin) -> dict[str, str]:
    owners = {type(plugin).__name__: vars(type(plugin)), "self": getattr(plugin, "__dict__", {})}
    return {f"{owner}.{name}": repr(each[name]) for owner, each in owners.items() for name in each}


@dataclass(frozen=True)
class Requirement:
    """A promise of the contract.

    Attributes:
        name: Its name, one word.
        text: The promise as a sentence.
        problems: Yields what is wrong for the manifest of one Job.
        odd: Whether it must also hold for Jobs that admission would refuse.
    """

    name: str
    text: str
    problems: Callable[[TestedPlugin, Raw], Iterator[str]]
    odd: bool = False


def _answers(subject: TestedPlugin, manifest: Raw) -> Iterator[str]:
    job = subject.job(manifest)
    for key in subject.asked(job)["job_annotations"]:
        yield from _invalid("annotation of the Job", key, names.qualified_name_problem)
    wiring = Wiring(job, subject.registry)
    for task in job.tasks:
        wiring.pod(task, 0, task.template or {})


def _pure(subject: TestedPlugin, manifest: Raw) -> Iterator[str]:
    job = subject.job(manifest)
    before = msgspec.json.encode(job)
    first = subject.asked(job)
    if msgspec.json.encode(job) != before:
        yield "changes the Job that it is given"
    subject.asked(subject.job(manifest, "2"))
    with patch.dict(os.environ, clear=True):
        again = subject.asked(subject.job(manifest), backwards=True)
    if first != again and (change := _change(_leaves(first), _leaves(again))):
        how = "(asked about the last pod first, without environment variables)"
        yield f"answers otherwise when it is asked again: {change} {how}"
    if change := _change(subject.state, _state(subject.plugin)):
        yield f"keeps something between calls: {change}"


def _leaves(value: Any, place: str = "") -> dict[str, str]:
    """What an answer holds, as text by its place."""
    value = msgspec.to_builtins(value, enc_hook=repr)
    if isinstance(value, dict):
        items = [(f"{place}.{key}".lstrip("."), each) for key, each in value.items()]
    elif isinstance(value, list | tuple):
        items = [(f"{place}[{number}]", each) for number, each in enumerate(value)]
    else:
        return {place: repr(value)}
    return {below: text for at, each in items for below, text in _leaves(each, at).items()}


def _change(old: dict[str, str], new: dict[str, str]) -> str:
    """The first difference; empty if there is none."""
    for place in old | new:
        was, now = old.get(place, "nothing"), new.get(place, "nothing")
        if was != now:
            return f"{place} was {was} and is now {now}"
    return ""


def _edits(subject: TestedPlugin, manifest: Raw) -> Iterator[str]:
    for pod, edits in subject.asked(subject.job(manifest))["pod_edits"].items():
        try:
            yield from (f"the edits of pod {pod}: {problem}" for problem in _refused(edits))
        except FAILURES as error:
            yield f"the edits of pod {pod}: a value of the wrong type: {error!r}"


def _refused(edits: PodEdits) -> Iterator[str]:
    """What the API server would refuse in a pod."""
    for variable in edits.env:
        yield from _invalid("variable", variable.name, names.env_name_problem)
    for port in edits.ports:
        number: Any = port.number
        if not isinstance(number, int) or number not in _PORTS:
            yield f"port {number!r} is none: expected a number from 1 to {_PORTS[-1]}"
        if port.name:
            yield from _invalid("port name", port.name, names.port_name_problem)
    volumes = [each.get("name") for each in edits.volumes]
    for name in volumes:
        yield from _invalid("volume", name, names.dns_label_problem)
    for mount in edits.mounts:
        if mount.volume not in volumes:
            yield f'mounts volume "{mount.volume}", which its volumes do not hold'
    for key, value in (edits.labels or {}).items():
        yield from _invalid("label", key, names.qualified_name_problem)
        yield from _invalid(f"the value of label {key}", value, names.label_value_problem)
    for key in edits.annotations or {}:
        yield from _invalid("annotation", key, names.qualified_name_problem)


def _invalid(what: str, name: Any, problem_of: Callable[[str], str | None]) -> Iterator[str]:
    if not isinstance(name, str):
        yield f"{what} {name!r}: expected text"
    elif problem := problem_of(name):
        yield f'{what} "{name}": {problem}'


def _objects(subject: TestedPlugin, manifest: Raw) -> Iterator[str]:
    job = subject.job(manifest)
    found = subject.asked(job)
    for each in found["objects"]:
        if of_object(each) not in KINDS:
            known = ", ".join(f"{kind.api_version} {kind.kind}" for kind in KINDS)
            what = f"{each['apiVersion']} {each['kind']}"
            yield f'the controller writes no "{what}" for plugins, but {known}'
    others = [*_wanted(subject.asked(subject.job(manifest, "2")))]
    for kind, name, namespace in _wanted(found):
        yield from _invalid(kind, name, names.dns_subdomain_problem)
        if namespace != job.metadata.namespace:
            yield f'{kind} "{name}" is not in the Job\'s namespace'
        if (kind, name, namespace) in others:
            yield f'two Jobs of a namespace would share the {kind} "{name}": put the Job\'s name into it'


def _wanted(found: Raw) -> Iterator[tuple[str, str, str | None]]:
    for each in found["objects"]:
        yield each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")
    for each in found["secrets"]:
        yield SECRET.kind, each.name, each.namespace


def _dependencies(subject: TestedPlugin, manifest: Raw) -> Iterator[str]:
    job = subject.job(manifest)
    with_svc = "svc" in (job.spec.plugins or ())
    unresolved = [] if with_svc else [each for task in job.tasks for each in addresses(job, task)]
    wiring = Wiring(job, subject.registry)
    for task, index in [(each, index) for each in job.tasks for index in range(each.size)]:
        bare = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main"}]}}
        set_before: list[str] = []
        for entry in wiring.pod(task, index, bare)["spec"]["containers"][0].get("env", ()):
            name, value = entry["name"], str(entry.get("value", ""))
            if any(address in value for address in unresolved):
                yield f'{name} holds an address of a pod, which resolves only with plugin svc: add "svc" to requires'
            for other in _REFERENCE.findall(value):
                if other not in set_before:
                    yield f"{name} refers to $({other}), which no plugin that it requires and comes after sets: see requires and after"
            set_before.append(name)


PROMISES = (
    Requirement("answers", "answers every question, whatever the Job holds", _answers, odd=True),
    Requirement("pure", "goes by its arguments alone, changes and keeps nothing", _pure),
    Requirement("edits", "asks for nothing that a pod cannot have", _edits),
    Requirement("objects", "wants objects of known kinds, each Job its own", _objects),
    Requirement("dependencies", "what it leans on is required", _dependencies),
)
"""Promises that are tried on many Jobs, in this order."""
