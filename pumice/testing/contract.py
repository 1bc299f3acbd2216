"""The contract of job plugins: one function for each promise, which returns what is wrong in words for the author.

Some promises need no check, because Pumice and not the plugin applies the edits to a pod: the template wins,
unknown fields stay, nothing is there twice.
"""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.fields import closest
from pumice.api.jobs import Job
from pumice.api.names import pod_name, qualified_name_problem
from pumice.plugins import JobPlugin, PodEdits, Raw, Registry, Wiring, addresses, dependencies
from pumice.plugins.answers import fault_of_edits
from pumice.plugins.applied import FAILURES, applied
from pumice.testing.jobs import VALUES
from pumice.testing.outside import watching
from pumice.testing.wanted import fault_in_pod, fault_of_objects

__all__ = ["PROMISES", "Promise", "Subject", "declaration"]

_REFERENCE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class Subject:
    """A plugin under test.

    Args:
        plugin: The plugin, which has not been asked anything yet.
        registry: It and the built-in plugins.
    """

    def __init__(self, plugin: JobPlugin, registry: Registry) -> None:
        self.plugin = plugin
        self.registry = registry
        self.state = _state(plugin)
        codes = [getattr(each, "__code__", None) for each in vars(type(plugin)).values()]
        self.file: str = next((each.co_filename for each in codes if each is not None), "")

    def job(self, manifest: Raw, suffix: str = "") -> Job:
        """The Job after admission, with the plugins that this one requires.

        Args:
            manifest: The Job.
            suffix: Appended to its name.
        """
        manifest = deepcopy(manifest)
        manifest["metadata"]["name"] += suffix
        plugins = manifest["spec"]["plugins"]
        plugins |= dependencies(plugins, self.registry)
        return msgspec.convert(manifest, Job)

    def asked(self, job: Job, *, backwards: bool = False) -> Raw:
        """All answers about a Job and its pods, by what was asked.

        Args:
            job: The Job.
            backwards: Whether to ask about the last pod first, which must make no difference.

        Raises:
            PluginError: The plugin fails, or an answer is of another type than expected.
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
        edits: dict[str, PodEdits] = {}
        for task, index in reversed(pods) if backwards else pods:
            try:
                given = edit(task, index)
                fault = fault_of_edits(given)
            except FAILURES as error:
                raise one.failed(error) from error
            if fault:
                raise one.wrong(fault)
            edits[f"{task.name}-{index}"] = given
        return deepcopy({**found, "pod_edits": edits})


@dataclass(frozen=True)
class Promise:
    """A promise of the contract.

    Attributes:
        name: Its name, one word.
        text: The promise as a sentence.
        problem: What is wrong for the manifest of one Job; empty if nothing is.
        odd: Whether it also holds for Jobs that admission would refuse.
    """

    name: str
    text: str
    problem: Callable[[Subject, Raw], str]
    odd: bool = False


def declaration(subject: Subject) -> str:
    """What is wrong with the plugin's attributes, beyond what registering it refuses."""
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


def _answers(subject: Subject, manifest: Raw) -> str:
    for key in subject.asked(subject.job(manifest))["job_annotations"]:
        if problem := qualified_name_problem(key):
            return f'job_annotations gives "{key}", which as the key of an annotation {problem}'
    return ""


def _pure(subject: Subject, manifest: Raw) -> str:
    job = subject.job(manifest)
    before = msgspec.json.encode(job)
    with watching(subject.file) as seen:
        first = subject.asked(job)
    if seen:
        return seen[0]
    if msgspec.json.encode(job) != before:
        return "changes the Job that it is given"
    subject.asked(subject.job(manifest, "2"))
    again = subject.asked(subject.job(manifest), backwards=True)
    for what, answer in first.items():
        if answer != again[what]:
            return f"answers otherwise when it is asked again: {what} is {answer!r} and then {again[what]!r}"
    for name, value in _state(subject.plugin).items():
        if value != (old := subject.state.get(name, "nothing")):
            return f"keeps something between calls: {name} was {old} and is now {value}"
    return ""


def _state(plugin: Any) -> dict[str, str]:
    """Attributes of a plugin and its classes, as text."""
    owners = {each.__name__: each for each in type(plugin).__mro__ if issubclass(each, JobPlugin)}
    return {
        f"{owner}.{name}": repr(value)
        for owner, each in {**owners, "self": plugin}.items()
        for name, value in getattr(each, "__dict__", {}).items()
    }


def _idempotent(subject: Subject, manifest: Raw) -> str:
    job = subject.job(manifest)
    wiring = Wiring(job, subject.registry)
    for task in job.tasks:
        metadata = {"name": pod_name(job.metadata.name, task.name, 0), "namespace": "default"}
        once = wiring.pod(task, 0, {"metadata": metadata, **(task.template or {})})
        if wiring.pod(task, 0, deepcopy(once)) != once:
            return f"wiring pod {metadata['name']} a second time changes it"
    return ""


def _edits(subject: Subject, manifest: Raw) -> str:
    for pod, edits in subject.asked(subject.job(manifest))["pod_edits"].items():
        if fault := fault_in_pod(edits):
            return f"the edits of pod {pod}: {fault}"
    return ""


def _objects(subject: Subject, manifest: Raw) -> str:
    job = subject.job(manifest)
    found = subject.asked(job)
    if fault := fault_of_objects(found["objects"], found["secrets"], job.metadata.namespace):
        return fault
    other = [*_wanted(subject.asked(subject.job(manifest, "2")))]
    for kind, name in _wanted(found):
        if (kind, name) in other:
            return f'two Jobs of a namespace would share the {kind} "{name}": put the Job\'s name into it'
    return ""


def _wanted(found: Raw) -> Iterator[tuple[str, str]]:
    for each in found["objects"]:
        yield each["kind"], each["metadata"]["name"]
    for each in found["secrets"]:
        yield "Secret", each.name


def _dependencies(subject: Subject, manifest: Raw) -> str:
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
    Promise("answers", "answers every question, whatever the Job holds", _answers, odd=True),
    Promise("pure", "goes by its arguments alone, changes and keeps nothing", _pure),
    Promise("idempotent", "wiring a wired pod changes nothing", _idempotent),
    Promise("edits", "asks for nothing that a pod cannot have", _edits),
    Promise("objects", "wants objects of known kinds, each Job its own", _objects),
    Promise("dependencies", "what it leans on is required", _dependencies),
)
"""What is tried on many Jobs, in this order."""
