"""The contract of job plugins: one function for each promise, which returns the problem in words for the plugin's author.

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
from pumice.api.fields import closest
from pumice.api.jobs import Job
from pumice.api.kinds import CONFIG_MAP, NETWORK_POLICY, SECRET, SERVICE
from pumice.plugins import JobPlugin, PluginError, Raw, Registry, Wiring, addresses, dependencies
from pumice.plugins.applied import FAILURES, applied
from pumice.testing.jobs import VALUES

__all__ = ["KINDS", "PROMISES", "Requirement", "TestedPlugin", "declaration"]

KINDS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY)
"""Kinds that the controller watches and may write for plugins."""

_LARGEST_PORT = 65535
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

        Args:
            job: The Job.
            backwards: Whether to begin with the last pod, which must make no difference.

        Raises:
            PluginError: The plugin fails, or a result has a wrong type.
        """
        one = next(each for each in applied(job, self.registry) if each.plugin is self.plugin)
        found: Raw = {
            "check": one.check(job),
            "job_annotations": one.job_annotations(job),
            "objects": one.objects(job),
            "secrets": one.secrets(job),
        }
        edit = one.editor(job)
        pods = [(task, index) for task in job.tasks for index in range(task.size + 1)]
        if backwards:
            pods.reverse()
        found["pod_edits"] = {f"{task.name}-{n}": one.edits(edit, task, n) for task, n in pods}
        return deepcopy(found)


@dataclass(frozen=True)
class Requirement:
    """A promise of the contract.

    Attributes:
        name: Its name, one word.
        text: The promise as a sentence.
        problem: Returns what is wrong for the manifest of one Job; empty if nothing is.
        odd: Whether it must also hold for Jobs that admission would refuse.
    """

    name: str
    text: str
    problem: Callable[[TestedPlugin, Raw], str]
    odd: bool = False


def declaration(subject: TestedPlugin) -> str:
    """Problems of the plugin's attributes that registration does not find."""
    plugin = subject.plugin
    if not re.fullmatch(r"[A-Z].*\.", plugin.summary):
        return f"summary {plugin.summary!r} is no sentence: a capital first, a full stop at the end"
    for argument in plugin.arguments:
        if not argument.help or argument.help.endswith("."):
            return f"the help of --{argument.name} must be one line without a full stop"
        for word in VALUES:
            if fault := _fault_of_reading(argument.kind.read, word):
                return f"reading --{argument.name}={word} raises {fault}"
    for name in plugin.after:
        meant = closest(name, subject.registry.names)
        if meant is not None and meant != name:
            return f'after names "{name}", which is no plugin (did you mean "{meant}"?)'
    return ""


def _fault_of_reading(read: Callable[[str], Any], word: str) -> str:
    try:
        read(word)
    except ValueError as error:
        return "" if str(error) else "ValueError without a text that says what was expected"
    except FAILURES as error:
        return f'{error!r}: a bad value must raise ValueError("expected …")'
    return ""


def _answers(subject: TestedPlugin, manifest: Raw) -> str:
    job = subject.job(manifest)
    for key in subject.asked(job)["job_annotations"]:
        if problem := names.qualified_name_problem(key):
            return f'job_annotations gives "{key}", which is an invalid key of an annotation: {problem}'
    wiring = Wiring(job, subject.registry)
    for task in job.tasks:
        wiring.pod(task, 0, task.template or {})
    return ""


def _pure(subject: TestedPlugin, manifest: Raw) -> str:
    job = subject.job(manifest)
    before = msgspec.json.encode(job)
    first = subject.asked(job)
    if msgspec.json.encode(job) != before:
        return "changes the Job that it is given"
    subject.asked(subject.job(manifest, "2"))
    try:
        with patch.dict(os.environ, clear=True):
            again = subject.asked(subject.job(manifest), backwards=True)
    except PluginError as error:
        return f"fails when it is asked again, without environment variables: {error}"
    for what, answer in first.items():
        if answer != again[what]:
            both = (msgspec.to_builtins(each, enc_hook=repr) for each in (answer, again[what]))
            place, old, new = _difference(what, *both)
            return (
                f"answers otherwise when it is asked again: {place} was {old!r} and is now {new!r} "
                "(asked about the last pod first, without environment variables)"
            )
    for name, value in _state(subject.plugin).items():
        if value != (old := subject.state.get(name, "nothing")):
            return f"keeps something between calls: {name} was {old} and is now {value}"
    return ""


def _difference(place: str, old: Any, new: Any) -> tuple[str, Any, Any]:
    """The first place at which two answers differ, and what is there."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        parts = [(f"{place}.{key}", value, new[key]) for key, value in old.items()]
    elif isinstance(old, list | tuple) and isinstance(new, type(old)) and len(old) == len(new):
        parts = [(f"{place}[{n}]", *pair) for n, pair in enumerate(zip(old, new, strict=True))]
    else:
        return place, old, new
    return next((_difference(*each) for each in parts if each[1] != each[2]), (place, old, new))


def _state(plugin: Any) -> dict[str, str]:
    owners = {type(plugin).__name__: vars(type(plugin)), "self": getattr(plugin, "__dict__", {})}
    return {f"{owner}.{name}": repr(each[name]) for owner, each in owners.items() for name in each}


def _edits(subject: TestedPlugin, manifest: Raw) -> str:
    for pod, edits in subject.asked(subject.job(manifest))["pod_edits"].items():
        try:
            fault = next(filter(None, _faults_in_pod(edits)), "")
        except FAILURES as error:
            fault = f"a value of the wrong type: {error!r}"
        if fault:
            return f"the edits of pod {pod}: {fault}"
    return ""


def _faults_in_pod(edits: Any) -> Iterator[str]:
    """What the API server would refuse in a pod; empty texts where nothing is wrong."""
    for variable in edits.env:
        yield _named("variable", variable.name, names.env_name_problem(variable.name))
    for port in edits.ports:
        if not isinstance(port.number, int) or not 1 <= port.number <= _LARGEST_PORT:
            yield f"port {port.number!r} is none: expected a number from 1 to {_LARGEST_PORT}"
        if port.name:
            yield _named("port name", port.name, names.port_name_problem(port.name))
    volumes = [str(each.get("name", "")) for each in edits.volumes]
    for name in volumes:
        yield _named("volume", name, names.dns_label_problem(name))
    for mount in edits.mounts:
        if mount.volume not in volumes:
            yield f'mounts volume "{mount.volume}", which its volumes do not hold'
    for key, value in (edits.labels or {}).items():
        yield _named("label", key, names.qualified_name_problem(key))
        yield _named(f"the value of label {key}", value, names.label_value_problem(value))
    for key in edits.annotations or {}:
        yield _named("annotation", key, names.qualified_name_problem(key))


def _named(what: str, name: str, problem: str | None) -> str:
    return f'{what} "{name}": {problem}' if problem else ""


def _objects(subject: TestedPlugin, manifest: Raw) -> str:
    job = subject.job(manifest)
    found = subject.asked(job)
    for each in found["objects"]:
        if (each["apiVersion"], each["kind"]) not in [(k.api_version, k.kind) for k in KINDS]:
            known = ", ".join(f"{kind.api_version} {kind.kind}" for kind in KINDS)
            what = f"{each['apiVersion']} {each['kind']}"
            return f'the controller writes no "{what}" for plugins, but {known}'
    others = [*_wanted(subject.asked(subject.job(manifest, "2")))]
    for kind, name, namespace in _wanted(found):
        if problem := names.dns_subdomain_problem(name):
            return _named(kind, name, problem)
        if namespace != job.metadata.namespace:
            return f'{kind} "{name}" is not in the Job\'s namespace'
        if (kind, name, namespace) in others:
            return f'two Jobs of a namespace would share the {kind} "{name}": put the Job\'s name into it'
    return ""


def _wanted(found: Raw) -> Iterator[tuple[str, str, str | None]]:
    for each in found["objects"]:
        yield each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")
    for each in found["secrets"]:
        yield SECRET.kind, each.name, each.namespace


def _dependencies(subject: TestedPlugin, manifest: Raw) -> str:
    job = subject.job(manifest)
    name = subject.plugin.name
    if "svc" not in (name, *dependencies({name: []}, subject.registry)):
        known = [each for task in job.tasks for each in addresses(job, task)]
        for edits in subject.asked(job)["pod_edits"].values():
            for variable in edits.env:
                if any(address in variable.value for address in known):
                    return f'{variable.name} holds an address of a pod, which resolves only with plugin svc: add "svc" to requires'
    wiring = Wiring(job, subject.registry)
    for task in job.tasks:
        bare = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main"}]}}
        set_before: list[str] = []
        for entry in wiring.pod(task, 0, bare)["spec"]["containers"][0].get("env", ()):
            for other in _REFERENCE.findall(str(entry.get("value", ""))):
                if other not in set_before:
                    return (
                        f"{entry['name']} refers to $({other}), which no plugin that it requires and "
                        "comes after sets: see requires and after"
                    )
            set_before.append(entry["name"])
    return ""


PROMISES = (
    Requirement("answers", "answers every question, whatever the Job holds", _answers, odd=True),
    Requirement("pure", "goes by its arguments alone, changes and keeps nothing", _pure),
    Requirement("edits", "asks for nothing that a pod cannot have", _edits),
    Requirement("objects", "wants objects of known kinds, each Job its own", _objects),
    Requirement("dependencies", "what it leans on is required", _dependencies),
)
"""Promises that are tried on many Jobs, in this order."""
