"""What admission says about the plugins of a Job."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.jobs import Job
from pumice.plugins import builtin, problems
from tests.unit.plugins.support import job, task


def test_an_unknown_plugin_is_refused_with_the_one_that_was_meant() -> None:
    found = problems(job("j", task("w"), plugins={"tensorfow": []}), builtin())

    (error,) = found.errors
    assert str(error) == (
        'spec.plugins.tensorfow: unable to find job plugin "tensorfow" (did you mean "tensorflow"?) [JOB-PLUGIN]'
    )
    assert error.reason == "FieldValueNotSupported"


def test_an_unknown_plugin_like_no_other_is_refused_with_the_list() -> None:
    (error,) = problems(job("j", task("w"), plugins={"big_plugin": []}), builtin()).errors

    assert "known are svc, ssh, env, tensorflow, pytorch, mpi" in error.message


@pytest.mark.parametrize(
    ("arguments", "tasks", "refused"),
    [
        (["--master=launcher"], ["launcher", "worker"], ""),
        (["--master=launcher"], ["launcher"], ""),
        (["--master", "launcher"], ["launcher"], ""),
        ([], ["master"], ""),
        (["--master=launcher"], ["worker"], 'the Job has no task named "launcher"'),
        ([], ["mastr"], '(did you mean "mastr"?)'),
        ([], [], 'the Job has no task named "master"'),
    ],
)
def test_an_mpi_job_needs_its_master(arguments: list[str], tasks: list[str], refused: str) -> None:
    mpi = job("j", *(task(name) for name in tasks), plugins={"mpi": arguments})

    errors = problems(mpi, builtin()).errors

    assert [error.code for error in errors] == (["JOB-MPI-MASTER"] if refused else [])
    assert all(refused in error.message for error in errors)


def test_everything_is_reported_at_once_and_in_order() -> None:
    plugins = {
        "task-topology": ["--affinity=[[w, x]]"],
        "tensorflow": ["--port=abc", "--ps=nobody"],
        "mpi": ["junk"],
        "nope": [],
    }
    found = problems(job("j", task("w", 2), plugins=plugins), builtin())

    assert [error.code for error in found.errors] == ["JOB-PLUGIN", "JOB-MPI-MASTER"]
    assert [(warning.path, warning.code) for warning in found.warnings] == [
        ("spec.plugins.tensorflow[0]", "JOB-PLUGIN-ARGUMENT"),
        ("spec.plugins.tensorflow", "JOB-PLUGIN-ROLE"),
        ("spec.plugins.tensorflow", "JOB-PLUGIN-ROLE"),
        ("spec.plugins.mpi[0]", "JOB-PLUGIN-ARGUMENT"),
        ("spec.plugins.task-topology", "JOB-PLUGIN-ROLE"),
    ]


@pytest.mark.parametrize(
    ("plugins", "used"),
    [
        ({"svc": ["--publish-not-ready-addresses=abc"]}, "false is used instead"),
        ({"svc": ["--publish-not-ready-addresses=abc"], "pytorch": []}, "true is used instead"),
        ({"ssh": ["--ssh-port=abc"], "svc": []}, "22 is used instead"),
        ({"ssh": ["--ssh-port=abc"], "svc": [], "mpi": ["--port=2222"]}, "2222 is used instead"),
        ({"ssh": ["--ssh-prot=1"], "svc": [], "mpi": ["--port=2222"]}, "--ssh-port is 2222"),
        ({"ssh": ["--ssh-port=7", "--ssh-port=x"], "svc": [], "mpi": []}, "7 is used instead"),
        ({"ray": ["--clientPort=abc"]}, "10001 is used instead"),
        ({"ray": ["--clientPort=abc", "--clientServerPort=5"]}, "5 is used instead"),
        ({"ray": ["--clientServerPort=abc", "--clientPort=5"]}, "5 is used instead"),
    ],
)
def test_what_is_used_instead_is_what_the_job_gets(
    plugins: dict[str, list[str]], used: str
) -> None:
    """Where another plugin, or another argument, decides what was not given."""
    tasks = [task(name) for name in ("master", "worker", "head")]

    (warning,) = problems(job("j", *tasks, plugins=plugins), builtin()).warnings

    assert warning.code == "JOB-PLUGIN-ARGUMENT"
    assert warning.message.endswith(f"; {used}")


def test_a_job_without_plugins_has_no_problems() -> None:
    assert problems(job("j", task("w")), builtin()) == ((), ())


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["spec", "containers", "env", "name", "hostname", "subdomain"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
PLUGINS = st.dictionaries(
    st.sampled_from([*builtin().names, "unknown"]), st.lists(st.text(max_size=6)), max_size=4
)


@given(st.text(max_size=4), st.lists(ANYTHING, max_size=2), PLUGINS, st.booleans())
def test_no_job_whatever_breaks_the_judge(
    name: str, templates: list[Any], plugins: dict[str, list[str]], strict_upstream: bool
) -> None:
    tasks = [
        {"name": "w", "replicas": 2, "template": each}
        for each in templates
        if isinstance(each, dict)
    ]
    manifest = {"metadata": {"name": name}, "spec": {"tasks": tasks, "plugins": plugins}}

    problems(msgspec.convert(manifest, Job), builtin(), strict_upstream=strict_upstream)
