"""What must hold of every job plugin, one function a sentence.

Each looks at one example and answers with what is wrong, in words that lead its author to the place, or
with nothing.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.api.fields import closest
from pumice.api.names import qualified_name_problem
from pumice.cli.contract.manifests import faults_of_edits, faults_of_objects, repeated
from pumice.cli.contract.subject import Example, Subject, job_of, said
from pumice.cli.contract.watching import watching
from pumice.plugins import Raw, Wiring, addresses, answers, dependencies
from pumice.plugins.applied import FAILURES

__all__ = ["PROPERTIES", "Property", "declaration"]

_REFERENCE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


@dataclass(frozen=True)
class Property:
    """A sentence of the contract.

    Attributes:
        name: One word for it.
        text: The sentence.
        problem: What is wrong with an example; empty when nothing is.
        odd: Whether it holds of Jobs that admission would refuse, too.
    """

    name: str
    text: str
    problem: Callable[[Subject, Example], str]
    odd: bool = False


def declaration(subject: Subject) -> str:
    """What is wrong with what a plugin says of itself, beyond what registering it refuses."""
    plugin = subject.plugin
    if not re.fullmatch(r"[A-Z].*\.", plugin.summary):
        return f"summary {plugin.summary!r} is no sentence: a capital first, a full stop at the end"
    for argument in plugin.arguments:
        if not argument.help or argument.help.endswith("."):
            return f"the help of --{argument.name} must be one line without a full stop"
    for name in plugin.after:
        meant = closest(name, subject.registry.names)
        if meant is not None and meant != name:
            return f'after names "{name}", which is no plugin (did you mean "{meant}"?)'
    if plugin.name in (*plugin.requires, *plugin.after):
        return "it requires or comes after itself"
    return ""


def _raises_nothing(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    try:
        said(subject.plugin, job)
    except FAILURES as error:
        return f"raises {error!r}{_where(error, subject.file)}"
    return ""


def _answers(subject: Subject, example: Example) -> str:
    try:
        found = said(subject.plugin, job_of(subject, example))
    except FAILURES:
        return ""  # which `total` tells
    return (
        answers.fault_of_findings(found["check"])
        or answers.fault_of_annotations(found["job_annotations"])
        or _fault_of_names(found["job_annotations"])
        or answers.fault_of_objects(found["objects"])
        or answers.fault_of_secrets(found["secrets"])
        or next((answers.fault_of_edits(found[what]) for what in found if _of_a_pod(what)), "")
    )


def _fault_of_names(annotations: Mapping[str, str]) -> str:
    for key in annotations:
        if problem := qualified_name_problem(key):
            return f'job_annotations gives "{key}", which as the key of an annotation {problem}'
    return ""


def _pure(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    before = msgspec.json.encode(job)
    with watching(subject.file) as seen:
        first = said(subject.plugin, job)
    if seen:
        return seen[0]
    if msgspec.json.encode(job) != before:
        return "changes the Job that it is given"
    said(subject.plugin, job_of(subject, _renamed(example)))
    again = said(subject.plugin, job_of(subject, example), backwards=True)
    if differs := _difference(first, again):
        return f"answers otherwise when it is asked again: {differs}"
    if subject.fresh is None:
        return ""
    anew = said(subject.fresh(), job_of(subject, example))
    if differs := _difference(first, anew):
        return f"answers otherwise than a new one of its kind does: {differs}"
    return ""


def _idempotent(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    wiring = Wiring(job, subject.registry)
    task = job.tasks[example.position]
    once = wiring.pod(task, example.index, deepcopy(example.pod))
    twice = wiring.pod(task, example.index, deepcopy(once))
    if twice != once:
        return f"wiring a wired pod changes it: {_first_difference(once, twice)}"
    return ""


def _keeps(subject: Subject, example: Example) -> str:
    # Commands are not among it: a plugin may start a container its own way (`ContainerEdits`).
    job = job_of(subject, example)
    pod = deepcopy(example.pod)
    wired = Wiring(job, subject.registry).pod(job.tasks[example.position], example.index, pod)
    if pod != example.pod:
        return "changes the pod that it is given"
    lost = _lost(pod, wired)
    return f"{lost} of the template is gone or changed" if lost else ""


def _repeats_nothing(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    for what, edits in said(subject.plugin, job).items():
        if _of_a_pod(what) and (twice := repeated(edits)):
            return f"{what} have {twice} twice"
    return ""


def _edits(subject: Subject, example: Example) -> str:
    for what, edits in said(subject.plugin, job_of(subject, example)).items():
        if _of_a_pod(what) and (fault := faults_of_edits(edits)):
            return f"{what}: {fault}"
    return ""


def _objects(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    found = said(subject.plugin, job)
    fault = faults_of_objects(found["objects"], found["secrets"], job.metadata.namespace)
    if fault:
        return fault
    other = said(subject.plugin, job_of(subject, _renamed(example)))
    shared = _names_of(found) & _names_of(other)
    if shared:
        kind, name = min(shared)
        return (
            f'two Jobs of a namespace would share the {kind} "{name}": put the Job\'s name into it'
        )
    return ""


def _dependencies(subject: Subject, example: Example) -> str:
    job = job_of(subject, example)
    own = subject.plugin
    needed = dependencies({own.name: []}, subject.registry)
    if "svc" not in needed and own.name != "svc":
        known = [each for task in job.tasks for each in addresses(job, task)]
        for name, value in _variables(said(own, job)):
            if any(address in value for address in known):
                return f'{name} holds an address of a pod, and nobody makes it resolve: add "svc" to requires'
    wiring = Wiring(job, subject.registry)
    pod = wiring.pod(job.tasks[example.position], example.index, _bare(example.pod))
    return _unresolved(pod) or _unmade(pod, wiring)


PROPERTIES = (
    Property("total", "raises nothing, whatever the Job holds", _raises_nothing, odd=True),
    Property("answers", "answers each question with what it asks for", _answers, odd=True),
    Property("pure", "goes by its arguments alone and changes nothing that it is given", _pure),
    Property("idempotent", "wiring a wired pod changes nothing", _idempotent),
    Property(
        "keeps",
        "what the template says stays, unknown fields too; commands may be replaced",
        _keeps,
    ),
    Property("unique", "asks for nothing twice", _repeats_nothing),
    Property("edits", "asks for nothing that a pod cannot have", _edits),
    Property("objects", "wants objects of known kinds, each Job its own", _objects),
    Property("dependencies", "what it leans on is required", _dependencies),
)
"""The contract, in the order in which it is tried."""


def _of_a_pod(what: str) -> bool:
    """Whether an answer of `said` is the edits of a pod."""
    return what.startswith("the edits")


def _renamed(example: Example) -> Example:
    metadata = example.job["metadata"]
    job = {**example.job, "metadata": {**metadata, "name": f"{metadata['name']}2"}}
    return Example(job, example.position, example.index, example.pod)


def _where(error: BaseException, file: str) -> str:
    line, trace = "", error.__traceback__
    while trace is not None:
        if file and trace.tb_frame.f_code.co_filename == file:
            line = f" in line {trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _difference(first: dict[str, Any], second: dict[str, Any]) -> str:
    for what, answer in first.items():
        if answer != second.get(what):
            return f"{what} is {answer!r} and then {second.get(what)!r}"
    return ""


def _first_difference(one: Any, other: Any, path: str = "pod") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            if one.get(key) != other.get(key):
                return _first_difference(one.get(key), other.get(key), f"{path}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for position, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                return _first_difference(left, right, f"{path}[{position}]")
    return f"{path} is {one!r} and then {other!r}"


def _lost(before: Any, after: Any, path: str = "") -> str:
    """Path of what is in one value and not in the other; lists may have grown."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            here = f"{path}.{key}" if path else key
            if key not in after:
                return here
            if lost := _lost(value, after[key], here):
                return lost
        return ""
    if isinstance(before, list) and isinstance(after, list):
        rest = iter(after)
        for position, each in enumerate(before):
            if not any(not _lost(each, found) for found in rest):
                return f"{path}[{position}]"
        return ""
    return "" if before == after and type(before) is type(after) else path or "a value"


def _names_of(found: dict[str, Any]) -> set[tuple[str, str]]:
    names = {(each["kind"], each["metadata"]["name"]) for each in found["objects"]}
    return names | {("Secret", each.name) for each in found["secrets"]}


def _variables(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (variable.name, str(variable.value))
        for what, edits in found.items()
        if _of_a_pod(what)
        for variable in edits.env
    ]


def _bare(pod: Raw) -> Raw:
    """The pod without what the user refers to or mounts."""
    return {"metadata": pod["metadata"], "spec": {"containers": [{"name": "main"}]}}


def _unresolved(pod: Raw) -> str:
    """A reference to a variable that no plugin has set before; the user's come later still."""
    known: set[str] = set()
    for entry in pod["spec"]["containers"][0].get("env", ()):
        for name in _REFERENCE.findall(str(entry.get("value", ""))):
            if name not in known:
                return (
                    f"{entry['name']} refers to $({name}), which no plugin that it requires and comes "
                    "after sets: see requires and after"
                )
        known.add(entry["name"])
    return ""


def _unmade(pod: Raw, wiring: Wiring) -> str:
    """A volume of a ConfigMap or Secret that nobody makes."""
    wanted = {(each["kind"], each["metadata"]["name"]) for each in wiring.objects()}
    wanted |= {("Secret", each.name) for each in wiring.secrets()}
    for volume in pod["spec"].get("volumes", ()):
        for field, key, kind in (
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
        ):
            source = volume.get(field)
            if isinstance(source, dict) and not source.get("optional"):
                name = source.get(key)
                if (kind, name) not in wanted:
                    return (
                        f'volume "{volume["name"]}" is of {kind} "{name}", which neither it nor what it '
                        "requires wants: see objects and requires"
                    )
    return ""
