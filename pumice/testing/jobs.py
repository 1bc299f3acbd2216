"""Jobs that a plugin is tried on: usual ones, and ones that admission would refuse."""

from typing import Any

from hypothesis import strategies as st

from pumice.api.names import dns_label_problem
from pumice.plugins import JobPlugin, Raw
from pumice.plugins.arguments import shown

__all__ = ["VALUES", "jobs"]

VALUES = ("worker", "ps", "a-b", "8080", "-1", "1:3", "true", "maybe", "", "ps,worker", "[[ps]]")
"""Values of arguments; each is right for some plugin and wrong for others."""

_TASKS = ("worker", "master", "ps", "chief", "head", "scheduler", "a-b")


@st.composite
def jobs(draw: st.DrawFn, plugin: JobPlugin, *, odd: bool) -> Raw:
    """Manifests of Jobs that name a plugin.

    The names of tasks and the words of `spec.plugins` include the defaults of the plugin's arguments.

    Args:
        draw: Draws a value from a strategy; hypothesis passes it.
        plugin: The plugin.
        odd: Whether to draw Jobs, too, that admission would refuse.
    """
    defaults = [each.default for each in plugin.arguments if isinstance(each.default, str)]
    own = [each for each in defaults if not dns_label_problem(each)]
    names = st.sampled_from(list(dict.fromkeys([*own, *_TASKS])))
    templates = st.one_of(_TEMPLATES, _ODD_TEMPLATES) if odd else _TEMPLATES
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": draw(st.sampled_from(("train", "sweep"))), "namespace": "team"},
        "spec": {
            "plugins": {plugin.name: draw(st.lists(_words(plugin), max_size=3))},
            "tasks": [
                {
                    "name": name,
                    "replicas": draw(st.integers(0 if odd else 1, 3)),
                    "template": draw(templates),
                }
                for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))
            ],
        },
    }


def _words(plugin: JobPlugin) -> st.SearchStrategy[str]:
    defaults = [shown(each.default) for each in plugin.arguments]
    values = st.sampled_from(list(dict.fromkeys([*defaults, *VALUES])))
    flags = st.sampled_from([*plugin.arguments.names, "unknown"])
    return st.builds("--{}={}".format, flags, values)


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
        {},
        {"metadata": "text", "spec": None},
        {"metadata": {"labels": [1], "annotations": 0}, "spec": [{}]},
        {"spec": {"containers": {}, "initContainers": 0, "volumes": "text"}},
        {"spec": {"containers": [None, True], "initContainers": [[]], "volumes": [0.5]}},
        {"spec": {"containers": [{"name": 1, "env": {}, "ports": "text", "resources": []}]}},
        {"spec": {"containers": [{"env": [None], "ports": [{}], "volumeMounts": [0]}]}},
        {"spec": {"containers": [{"resources": {"limits": {"cpu": []}}}], "hostname": {}}},
    )
)
