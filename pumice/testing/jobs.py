"""Jobs that a plugin is tried on: usual ones, and ones that admission would refuse."""

from operator import itemgetter
from typing import Any

from hypothesis import strategies as st

from pumice.api.names import dns_label_problem
from pumice.plugins import JobPlugin, Raw
from pumice.plugins.arguments import shown

__all__ = ["jobs"]

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
