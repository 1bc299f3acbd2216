"""How edits are applied to a pod."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.plugins import EnvVar, Mount, PodEdits, Port, Raw, apply
from pumice.plugins.edits import ContainerEdits, merge
from tests.unit.plugins.support import containers, env, loses_nothing, pod_of, repeats


def test_injected_variables_stand_before_the_users() -> None:
    pod = pod_of("p")
    pod["spec"]["containers"][0]["env"] = [{"name": "MINE", "value": "$(A)"}]

    edited = apply(pod, PodEdits(env=[EnvVar("A", "1"), EnvVar("B", "2")]))

    assert env(containers(edited)["c0"]) == [("A", "1"), ("B", "2"), ("MINE", "$(A)")]


def test_a_variable_of_the_user_stays_as_and_where_it_is() -> None:
    pod = pod_of("p")
    mine = [{"name": "X", "value": "x"}, {"name": "A", "value": "mine", "unknown": 1}]
    pod["spec"]["containers"][0]["env"] = mine

    edited = apply(pod, PodEdits(env=[EnvVar("A", "1"), EnvVar("B", "2")]))

    assert containers(edited)["c0"]["env"] == [{"name": "B", "value": "2"}, *mine]
    assert env(containers(edited)["c1"]) == [("A", "1"), ("B", "2")]


def test_a_plugins_variable_replaces_the_users_where_asked_to() -> None:
    pod = pod_of("p")
    pod["spec"]["containers"][0]["env"] = [
        {"name": "A", "value": "mine"},
        {"name": "X", "value": "x"},
    ]
    edits = PodEdits(env=[EnvVar("A", "1"), EnvVar("B", "2")])

    edited = apply(pod, edits, user_wins=False)

    assert env(containers(edited)["c0"]) == [("B", "2"), ("A", "1"), ("X", "x")]
    assert apply(edited, edits, user_wins=False) is edited


def test_a_mount_may_be_meant_for_some_containers() -> None:
    """Whoever gets it there does not get another one at that path."""
    edits = PodEdits(
        mounts=[Mount("v", "/a", containers=frozenset({"c1", "i0"})), Mount("w", "/a")]
    )

    edited = apply(pod_of("p"), edits)

    found = {name: each["volumeMounts"] for name, each in containers(edited).items()}
    assert found == {
        name: [{"name": volume, "mountPath": "/a"}]
        for name, volume in (("c0", "w"), ("c1", "v"), ("i0", "v"))
    }
    assert apply(edited, edits) is edited


@pytest.mark.parametrize(
    "device",
    [
        {"name": "mine", "devicePath": "/a"},
        {"name": "mine", "devicePath": "/a/"},
        {"name": "v", "devicePath": "/dev/x"},
    ],
)
def test_nothing_is_mounted_where_a_block_device_is(device: Raw) -> None:
    """Kubernetes refuses a path, and a volume, that is both."""
    pod = pod_of("p")
    pod["spec"]["containers"][0]["volumeDevices"] = [device]
    edits = PodEdits(mounts=[Mount("v", "/a"), Mount("w", "/b")])

    edited = apply(pod, edits)

    found = {
        name: [mount["mountPath"] for mount in each["volumeMounts"]]
        for name, each in containers(edited).items()
    }
    assert found == {"c0": ["/b"], "c1": ["/a", "/b"], "i0": ["/a", "/b"]}
    assert apply(edited, edits) is edited


def test_an_init_container_of_a_containers_name_is_left_out() -> None:
    edits = PodEdits(init_containers=[{"name": "c1"}, {"name": "i1"}])

    edited = apply(pod_of("p"), edits)

    assert [each["name"] for each in edited["spec"]["initContainers"]] == ["i0", "i1"]
    assert apply(edited, edits) is edited


def test_init_containers_get_what_is_meant_for_them() -> None:
    edits = PodEdits(
        env=[EnvVar("A"), EnvVar("B", init_containers=False)],
        mounts=[Mount("v", "/a"), Mount("v", "/b", init_containers=False)],
        ports=[Port("p", 1), Port("q", 2, init_containers=True)],
    )

    init = containers(apply(pod_of("p"), edits))["i0"]

    assert [name for name, _ in env(init)] == ["A"]
    assert [mount["mountPath"] for mount in init["volumeMounts"]] == ["/a"]
    assert [port["containerPort"] for port in init["ports"]] == [2]


def test_an_init_container_that_keeps_running_is_a_container_like_the_others() -> None:
    pod = pod_of("p")
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"

    edited = apply(pod, PodEdits(env=[EnvVar("B", "1", init_containers=False)]))

    assert env(containers(edited)["i0"]) == [("B", "1")]


def test_a_mount_of_the_user_at_the_same_path_is_kept() -> None:
    pod = pod_of("p")
    mine = [{"name": "mine", "mountPath": "/etc/volcano/"}]
    pod["spec"]["containers"][0]["volumeMounts"] = mine

    edited = apply(pod, PodEdits(mounts=[Mount("v", "/etc/volcano")]))

    assert containers(edited)["c0"]["volumeMounts"] == mine
    assert containers(edited)["c1"]["volumeMounts"] == [{"name": "v", "mountPath": "/etc/volcano"}]


def test_a_volume_of_the_user_with_the_same_name_is_kept() -> None:
    pod = pod_of("p")
    pod["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]

    edited = apply(
        pod, PodEdits(volumes=[{"name": "v", "secret": {}}, {"name": "w", "secret": {}}])
    )

    assert edited["spec"]["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "secret": {}},
    ]


def test_a_declared_port_is_not_declared_again() -> None:
    pod = pod_of("p")
    pod["spec"]["containers"][0]["ports"] = [{"name": "s", "containerPort": 22}]

    edited = apply(pod, PodEdits(ports=[Port("ssh", 22)]))

    assert containers(edited)["c0"]["ports"] == [{"name": "s", "containerPort": 22}]
    assert containers(edited)["c1"]["ports"] == [{"name": "ssh", "containerPort": 22}]


def test_a_port_whose_name_is_taken_has_none() -> None:
    pod = pod_of("p")
    pod["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 80}]

    edited = apply(pod, PodEdits(ports=[Port("web", 81)]))

    assert containers(edited)["c0"]["ports"][1] == {"containerPort": 81}


def test_an_init_container_is_appended_once_and_edited_like_the_others() -> None:
    edits = PodEdits(init_containers=[{"name": "wait", "image": "busybox"}], env=[EnvVar("A", "1")])

    edited = apply(pod_of("p"), edits)

    assert [each["name"] for each in edited["spec"]["initContainers"]] == ["i0", "wait"]
    assert env(containers(edited)["wait"]) == [("A", "1")]
    assert apply(edited, edits) is edited


def test_hostname_subdomain_labels_and_annotations_are_set_where_missing() -> None:
    edits = PodEdits(
        hostname="h", subdomain="s", labels={"a": "1", "b": "2"}, annotations={"c": "3"}
    )
    pod: Raw = {"metadata": {"labels": {"a": "mine"}}, "spec": {"hostname": "mine"}}

    assert apply(pod, edits) == {
        "metadata": {"labels": {"a": "mine", "b": "2"}, "annotations": {"c": "3"}},
        "spec": {"hostname": "mine", "subdomain": "s"},
    }


def command_of(pod: Raw, name: str) -> Any:
    return containers(pod)[name].get("command")


def test_one_container_is_edited_and_the_others_are_not() -> None:
    pod = pod_of("p")
    pod["spec"]["containers"][1] |= {"command": ["mine"], "args": ["a"], "future": 1}

    edited = apply(pod, PodEdits(containers=[ContainerEdits("c1", ("run",), [Port("p", 1)])]))

    assert containers(edited)["c1"] == {
        "name": "c1",
        "command": ["run"],
        "args": ["a"],
        "future": 1,
        "ports": [{"name": "p", "containerPort": 1}],
    }
    assert containers(edited)["c0"] is pod["spec"]["containers"][0]


@pytest.mark.parametrize(("by_name_only", "expected"), [(False, ["run"]), (True, None)])
def test_the_only_container_is_meant_whatever_its_name(
    by_name_only: bool, expected: list[str] | None
) -> None:
    pod = pod_of("p")
    del pod["spec"]["containers"][1]
    edits = PodEdits(containers=[ContainerEdits("x", ("run",), by_name_only=by_name_only)])

    assert command_of(apply(pod, edits), "c0") == expected


def test_no_container_is_meant_by_a_name_that_none_of_several_has() -> None:
    pod = pod_of("p")

    assert apply(pod, PodEdits(containers=[ContainerEdits("x", ("run",))])) is pod


def test_the_earlier_of_two_commands_counts() -> None:
    edits = PodEdits(containers=[ContainerEdits("c0", ("a",)), ContainerEdits("c0", ("b",))])

    edited = apply(pod_of("p"), edits)

    assert command_of(edited, "c0") == ["a"]
    assert apply(edited, edits) is edited


def test_on_the_hosts_network_a_port_is_declared_once() -> None:
    pod = pod_of("p")
    pod["spec"]["hostNetwork"] = True
    pod["spec"]["containers"][1]["ports"] = [{"containerPort": 2}]
    edits = PodEdits(
        ports=[Port("p", 1, init_containers=True), Port("q", 2)],
        containers=[ContainerEdits("c1", ports=[Port("r", 3)])],
    )

    edited = apply(pod, edits)

    found = {name: each.get("ports", []) for name, each in containers(edited).items()}
    numbers = {name: [port["containerPort"] for port in ports] for name, ports in found.items()}
    assert numbers == {"c0": [1], "c1": [2, 3], "i0": []}
    assert apply(edited, edits) is edited


def test_nothing_wanted_gives_the_same_pod() -> None:
    pod = pod_of("p")

    assert apply(pod, PodEdits()) is pod


def test_the_earlier_of_two_plugins_wins() -> None:
    first = PodEdits(hostname="a", env=[EnvVar("A", "1")], labels={"l": "1"})
    second = PodEdits(
        hostname="b", subdomain="s", env=[EnvVar("A", "2"), EnvVar("B", "2")], labels={"l": "2"}
    )

    edited = apply(pod_of("p"), merge([first, second]))

    assert (edited["spec"]["hostname"], edited["spec"]["subdomain"]) == ("a", "s")
    assert env(containers(edited)["c0"]) == [("A", "1"), ("B", "2")]
    assert edited["metadata"]["labels"] == {"l": "1"}


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": None, "spec": None},
        {"spec": {"containers": "none", "volumes": 3}},
        {"spec": {"containers": [None, 3, {"env": "x", "ports": [None, {"containerPort": []}]}]}},
        {
            "spec": {
                "containers": [{"env": [{"name": []}, "x"], "volumeMounts": [{"mountPath": 1}]}]
            }
        },
    ],
)
def test_a_malformed_pod_is_not_made_worse(pod: Raw) -> None:
    edits = PodEdits(
        hostname="h",
        env=[EnvVar("A", "1")],
        mounts=[Mount("v", "/a")],
        ports=[Port("p", 1)],
        annotations={"a": "b"},
    )

    edited = apply(pod, edits)

    assert edited["spec"]["hostname"] == "h"
    assert apply(edited, edits) is edited


NAMES = st.sampled_from(["A", "B", "C", "D"])
UNKNOWN = st.dictionaries(st.sampled_from(["unknown", "future"]), st.integers(), max_size=1)


def items(key: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Raw]]:
    entry = st.builds(lambda value, more: {key: value} | more, values, UNKNOWN)
    return st.lists(entry, max_size=3, unique_by=lambda each: each[key])


def optional(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Raw]:
    return st.builds(
        lambda known, more: known | more, st.fixed_dictionaries({}, optional=fields), UNKNOWN
    )


CONTAINERS = st.lists(
    optional(
        {
            "name": NAMES,
            "env": items("name", NAMES),
            "volumeMounts": items("mountPath", st.sampled_from(["/a", "/b"])),
            "ports": items("containerPort", st.integers(1, 3)),
            "restartPolicy": st.just("Always"),
        }
    ),
    max_size=2,
)
PODS = optional(
    {
        "metadata": optional({"labels": st.dictionaries(NAMES, NAMES, max_size=2)}),
        "spec": optional(
            {
                "hostname": NAMES,
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
                "volumes": items("name", NAMES),
                "hostNetwork": st.just(True),
            }
        ),
    }
)
FLAG = st.booleans()
EDITS = st.builds(
    PodEdits,
    hostname=st.one_of(st.just(""), NAMES),
    subdomain=st.one_of(st.just(""), NAMES),
    env=st.lists(st.builds(EnvVar, NAMES, NAMES, init_containers=FLAG), max_size=4),
    volumes=items("name", NAMES),
    mounts=st.lists(st.builds(Mount, NAMES, st.sampled_from(["/a", "/b", "/c"]), FLAG), max_size=3),
    ports=st.lists(st.builds(Port, NAMES, st.integers(1, 4), FLAG), max_size=3),
    containers=st.lists(
        st.builds(
            ContainerEdits,
            NAMES,
            st.sampled_from([(), ("sh", "-c", "a"), ("sh", "-c", "b")]),
            st.lists(st.builds(Port, NAMES, st.integers(1, 4)), max_size=2),
            FLAG,
        ),
        max_size=2,
    ),
    init_containers=items("name", NAMES),
    labels=st.dictionaries(NAMES, NAMES, max_size=2),
    annotations=st.none() | st.dictionaries(NAMES, NAMES, max_size=2),
)


@given(PODS, EDITS)
def test_any_edits_lose_nothing_and_repeat_nothing(pod: Raw, edits: PodEdits) -> None:
    before = deepcopy(pod)

    edited = apply(pod, edits)

    assert pod == before
    assert loses_nothing(before, edited)
    assert repeats(edited) == repeats(before)


@given(PODS, EDITS, st.booleans())
def test_any_edits_applied_twice_are_applied_once(
    pod: Raw, edits: PodEdits, user_wins: bool
) -> None:
    edited = apply(pod, edits, user_wins=user_wins)

    assert apply(edited, edits, user_wins=user_wins) is edited
