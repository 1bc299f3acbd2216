"""Jobs and pods made up by hypothesis: usual ones, and ones that no rule would let through."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pumice.api.names import dns_label_problem, pod_name
from pumice.cli.contract.names import JOB_NAMES
from pumice.cli.contract.subject import Example
from pumice.plugins import JobPlugin, Raw
from pumice.plugins.arguments import shown

__all__ = ["examples"]

_TASKS = ("worker", "master", "ps", "chief", "head", "scheduler", "a-b")
_VALUES = ("worker", "ps", "a-b", "8080", "-1", "1:3", "true", "maybe", "", "ps,worker", "[[ps]]")
_VARIABLES = ("MINE", "RANK", "VC_TASK_INDEX", "TF_CONFIG", "PATH")
_FIELDS = ("containers", "initContainers", "volumes", "hostname", "subdomain", "hostNetwork")
_IN_LISTS = ("name", "env", "ports", "volumeMounts", "resources", "command")


def examples(plugin: JobPlugin, *, odd: bool) -> st.SearchStrategy[Example]:
    """Jobs that name a plugin, with its own arguments and defaults among their words.

    Args:
        plugin: The plugin.
        odd: Whether templates may hold what admission would refuse.
    """
    return _examples(plugin, odd)


@st.composite
def _examples(draw: st.DrawFn, plugin: JobPlugin, odd: bool) -> Example:
    names = draw(st.lists(st.sampled_from(_names(plugin)), min_size=1, max_size=3, unique=True))
    tasks = [draw(_tasks(name, odd)) for name in names]
    words = draw(st.lists(_words(plugin), max_size=3))
    job_name = draw(st.sampled_from(JOB_NAMES))
    job: Raw = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job_name, "namespace": "default"},
        "spec": {"plugins": {plugin.name: words}, "tasks": tasks},
    }
    position = draw(st.integers(0, len(tasks) - 1))
    index = draw(st.integers(0, 2))
    tasks[position]["replicas"] = max(tasks[position]["replicas"], index + 1)
    pod = draw(_PODS)
    metadata = {"name": pod_name(job_name, names[position], index), "namespace": "default"}
    return Example(job, position, index, {**pod, "metadata": metadata})


def _names(plugin: JobPlugin) -> list[str]:
    """Names of tasks: what a plugin's arguments name by default, and others."""
    defaults = [each.default for each in plugin.arguments if isinstance(each.default, str)]
    own = [each for each in defaults if not dns_label_problem(each)]
    return list(dict.fromkeys([*own, *_TASKS]))


def _words(plugin: JobPlugin) -> st.SearchStrategy[str]:
    defaults = [shown(each.default) for each in plugin.arguments]
    values = st.sampled_from(list(dict.fromkeys([*defaults, *_VALUES])))
    flags = st.sampled_from([*plugin.arguments.names, "unknown"])
    return st.builds("--{}={}".format, flags, values)


def _tasks(name: str, odd: bool) -> st.SearchStrategy[Raw]:
    template: st.SearchStrategy[Any] = _TEMPLATES
    if odd:
        template = st.one_of(_TEMPLATES, _ODD_TEMPLATES)
    return st.fixed_dictionaries(
        {"name": st.just(name), "replicas": st.integers(0, 3), "template": template}
    )


def _unique(strategy: st.SearchStrategy[Raw], key: str) -> st.SearchStrategy[Sequence[Raw]]:
    return st.lists(strategy, max_size=2, unique_by=lambda each: str(each[key]))


_ENTRIES = st.builds(
    lambda name: {"name": name, "value": "mine", "future": 1}, st.sampled_from(_VARIABLES)
)
_CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(("main", "side"))},
    optional={
        "env": _unique(_ENTRIES, "name"),
        "future": st.just(1),
        "ports": st.just([{"containerPort": 8080, "future": 1}]),
        "resources": st.just({"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}),
        "volumeMounts": st.just([{"name": "mine", "mountPath": "/mine", "future": 1}]),
    },
)
_SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            _CONTAINERS, min_size=1, max_size=2, unique_by=lambda each: str(each["name"])
        )
    },
    optional={
        "future": st.just(1),
        "hostname": st.just("mine"),
        "initContainers": st.just([{"name": "first", "future": 1}]),
        "volumes": st.just([{"name": "mine", "emptyDir": {}}]),
    },
)
_TEMPLATES = st.fixed_dictionaries({"spec": _SPECS})
_PODS = st.fixed_dictionaries({"spec": _SPECS}, optional={"future": st.just(1)})

_SCALARS = st.sampled_from((None, True, -1, 0, 2**62, 0.5, "", "text", "1e9Q"))
_VALUES_OF_LISTS = st.one_of(
    _SCALARS, st.dictionaries(st.sampled_from(_IN_LISTS), _SCALARS, max_size=2)
)
_LISTS = st.one_of(
    _SCALARS,
    st.lists(
        st.one_of(
            _VALUES_OF_LISTS,
            st.dictionaries(
                st.sampled_from(_IN_LISTS),
                st.one_of(_SCALARS, st.lists(_VALUES_OF_LISTS, max_size=2)),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)
_ODD_SPECS = st.one_of(_SCALARS, st.dictionaries(st.sampled_from(_FIELDS), _LISTS, max_size=3))
_ODD_TEMPLATES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.just({}), st.fixed_dictionaries({"spec": _ODD_SPECS, "metadata": _SCALARS})
)
