"""Checks of a job plugin: each promise of the contract is tried on many Jobs, and the smallest Job that breaks it is kept.

The Jobs are usual ones, and ones that admission would refuse.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec
import yaml
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, NoSuchExample

from pumice.api.meta import Raw
from pumice.api.names import dns_label_problem
from pumice.plugins import JobPlugin, PluginError, Registry, builtin
from pumice.plugins.applied import FAILURES
from pumice.plugins.arguments import shown
from pumice.testing.contract import PROMISES, Requirement, TestedPlugin

_VALUES = ("worker", "ps", "a-b", "8080", "-1", "1:3", "true", "maybe", "", "ps,worker", "[[ps]]")
"""Values of arguments; each is right for some plugin and wrong for others."""

_TASKS = ("worker", "master", "ps", "chief", "head", "scheduler", "a-b")


def jobs(plugin: JobPlugin, *, odd: bool) -> st.SearchStrategy[Raw]:
    """Manifests of Jobs that name a plugin; with `odd` also Jobs that admission would refuse.

    The names of tasks and the words of `spec.plugins` include the defaults of the plugin's arguments.
    """
    defaults = [shown(each.default) for each in plugin.arguments]
    own = [each for each in defaults if not dns_label_problem(each)]
    flags = st.sampled_from([*plugin.arguments.names, "unknown"])
    words = st.builds("--{}={}".format, flags, st.sampled_from([*defaults, *_VALUES]))
    task: st.SearchStrategy[Raw] = st.builds(
        dict,
        name=st.sampled_from([*own, *_TASKS]),
        replicas=st.integers(0 if odd else 1, 3),
        template=st.one_of(_TEMPLATES, _ODD_TEMPLATES) if odd else _TEMPLATES,
    )
    tasks = st.lists(task, min_size=1, max_size=3, unique_by=itemgetter("name"))

    def manifest(given: list[str], tasks: list[Raw]) -> Raw:
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "team"},
            "spec": {"plugins": {plugin.name: given}, "tasks": tasks},
        }

    return st.builds(manifest, st.lists(words, max_size=3), tasks)


_MAIN: Raw = {
    "name": "main",
    "env": [{"name": "PATH", "value": "mine", "future": 1}],
    "ports": [{"containerPort": 8080}],
    "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
}
_TEMPLATES: st.SearchStrategy[Any] = st.sampled_from(
    (
        {"spec": {"containers": [{"name": "main"}]}},
        {"spec": {"containers": [_MAIN, {"name": "side"}], "hostname": "mine"}},
        {"spec": {"containers": [_MAIN], "initContainers": [{"name": "first"}]}},
    )
)
_ODD_TEMPLATES: st.SearchStrategy[Any] = st.sampled_from(
    (
        None,
        {"metadata": "text", "spec": None},
        {"metadata": {"labels": [1], "annotations": 0}, "spec": [{}]},
        {"spec": {"containers": {}, "initContainers": 0, "volumes": "text"}},
        {"spec": {"containers": [None, True], "initContainers": [[]], "volumes": [0.5]}},
        {"spec": {"containers": [{"name": 1, "env": {}, "ports": "text", "resources": []}]}},
        {"spec": {"containers": [{"env": [None], "ports": [{}], "volumeMounts": [0]}]}},
    )
)


@dataclass(frozen=True)
class Result:
    """The outcome of one promise.

    Attributes:
        name: Name of the promise, one word.
        text: The promise as a sentence.
        problem: What is wrong; empty if the plugin keeps the promise.
        job: Manifest of the smallest Job found that breaks it; None if the problem is the same for every Job.
    """

    name: str
    text: str
    problem: str = ""
    job: Raw | None = None

    def details(self) -> Iterator[str]:
        """Lines that describe the problem, with the Job as YAML; none if there is no problem."""
        if self.problem:
            yield self.problem
        if self.job is not None:
            yield "The smallest example found:"
            job = msgspec.json.decode(msgspec.json.encode(self.job))  # nothing shared, for YAML
            for line in yaml.safe_dump(job, sort_keys=False).splitlines():
                yield f"  {line}"


def check_job_plugin(plugin: type[JobPlugin] | JobPlugin, *, examples: int = 100) -> None:
    """Check that a job plugin keeps its contract, which docs/writing-plugins.md describes.

    Args:
        plugin: The plugin: its class, or an object if making one needs arguments.
        examples: How many Jobs to try for each promise. The same Jobs are tried in each run.

    Raises:
        AssertionError: The plugin breaks promises; the message lists each with the smallest Job that shows it.
    """
    lines = ["the job plugin breaks its contract"]
    for each in job_plugin_results(plugin, examples=examples):
        if each.problem:
            lines += [f"  {each.name}: {each.text}", *(f"    {line}" for line in each.details())]
    if len(lines) > 1:
        raise AssertionError("\n".join(lines))


def job_plugin_results(plugin: type[JobPlugin] | JobPlugin, *, examples: int = 100) -> list[Result]:
    """Try every promise of the contract on a job plugin, as `check_job_plugin` does, and return a result for each.

    After a plugin cannot be registered or raises, nothing more is tried, so the broken promise is the last one.
    """
    text = "can be made and registered"
    try:
        subject = _subject(plugin() if isinstance(plugin, type) else plugin)
    except PluginError as error:
        return [Result("declared", text, str(error))]
    except FAILURES as error:
        return [Result("declared", text, f"cannot be made: {error!r}")]
    results = [Result("declared", text)]
    for promise in PROMISES:
        results.append(_tried(promise, subject, examples))
        if promise.odd and results[-1].problem:
            break  # the other promises are about answers
    return results


def _subject(plugin: JobPlugin) -> TestedPlugin:
    others = (each for each in builtin().entries if type(each.plugin) is not type(plugin))
    origin = f"{type(plugin).__module__}:{type(plugin).__qualname__}"
    return TestedPlugin(plugin, Registry(tuple(others)).with_plugin(plugin, origin))


def _tried(promise: Requirement, subject: TestedPlugin, count: int) -> Result:
    """Try a promise on many Jobs; the result has the smallest one found that breaks it."""
    found: list[Result] = []

    def breaks(job: Raw) -> bool:
        try:
            problem = next(promise.problems(subject, job), "")
        except PluginError as error:
            problem = str(error)
        if problem:
            found.append(Result(promise.name, promise.text, problem, job))
        return bool(problem)

    phases = (Phase.generate, Phase.shrink)
    same = settings(
        max_examples=count, database=None, deadline=None, derandomize=True, phases=phases
    )
    # hypothesis tries the smallest example last. A promise that is broken only sometimes is also broken.
    with suppress(NoSuchExample, Flaky):
        find(jobs(subject.plugin, odd=promise.odd), breaks, settings=same)
    return found[-1] if found else Result(promise.name, promise.text)
