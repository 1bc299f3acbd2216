"""Plugin `svc`."""

from typing import Any

import pytest

from pumice.api.jobs import Job
from pumice.plugins import Raw, Wiring, addresses, builtin, problems
from pumice.plugins.svc import CONFIG_MAP_LIMIT
from pumice.plugins.variables import HOSTS_VARIABLE_LIMIT
from tests.kit.tables import table
from tests.unit.plugins.support import containers, env, job, pod_of, rows, task, wired

HOSTS = table("plugins/svc-hosts")


def hosts_job(**fields: Any) -> Job:
    return job("j", *(task(*each) for each in HOSTS["tasks"]), plugins={"svc": []}, **fields)


def objects(job: Job, *, strict_upstream: bool = False) -> dict[str, Raw]:
    found = Wiring(job, builtin(), strict_upstream=strict_upstream).objects()
    return {each["kind"]: each for each in found}


@pytest.mark.parametrize("row", rows("svc"))
@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
def test_arguments_decide_what_is_made(row: dict[str, Any], strict_upstream: bool) -> None:
    plugins = {"svc": row["arguments"]} | {name: [] for name in row.get("with", ())}
    small = job("j", task("w"), plugins=plugins)
    expected = row.get("upstream", row) if strict_upstream else row

    made = objects(small, strict_upstream=strict_upstream)
    pod = wired(small, pod_of("j-w-0", "w"), strict_upstream=strict_upstream)

    assert list(made) == expected["objects"]
    published = made["Service"]["spec"].get("publishNotReadyAddresses", False)
    assert published == expected["publishes"]
    assert [len(env(each)) for each in containers(pod).values()] == [expected["variables"]] * 3


@pytest.mark.parametrize("row", rows("svc"))
def test_words_that_cannot_be_used_are_named(row: dict[str, Any]) -> None:
    small = job("j", task("w"), plugins={"svc": row["arguments"]})

    warnings = problems(small, builtin()).warnings

    assert len(warnings) == len(row.get("warned", ()))
    for warning, fragment in zip(warnings, row.get("warned", ()), strict=True):
        assert warning.code == "JOB-PLUGIN-ARGUMENT"
        assert warning.path.startswith("spec.plugins.svc[")
        assert fragment in warning.message


def test_the_config_map_holds_every_tasks_addresses() -> None:
    made = objects(hosts_job())["ConfigMap"]

    assert made["metadata"] == {"name": "j-svc", "namespace": "ns"}
    assert made["data"] == HOSTS["data"]


def test_the_service_and_the_network_policy_select_the_jobs_pods() -> None:
    made = objects(hosts_job())
    selector = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "ns"}

    assert made["Service"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"clusterIP": "None", "selector": selector},
    }
    assert made["NetworkPolicy"] == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {
            "podSelector": {"matchLabels": selector},
            "ingress": [{"from": [{"podSelector": {"matchLabels": selector}}]}],
            "policyTypes": ["Ingress"],
        },
    }


def test_a_pod_gets_its_name_and_all_others() -> None:
    pod = wired(hosts_job(), pod_of("j-a-b-1", "a-b"))

    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-a-b-1", "j")
    assert pod["spec"]["volumes"] == [{"name": "j-svc", "configMap": {"name": "j-svc"}}]
    expected = [
        (f"VC_{name}_{what}", ("j-svc", f"VC_{name}_{what}"))
        for name in ("A_B", "PS", "W", "X", "Y")
        for what in ("HOSTS", "NUM")
    ]
    for each in containers(pod).values():
        assert env(each) == expected
        assert each["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]


def test_a_pod_that_has_a_name_keeps_it() -> None:
    pod = pod_of("j-y-0", "y")
    pod["spec"] |= {"hostname": "h", "subdomain": "s"}

    edited = wired(hosts_job(), pod)

    assert (edited["spec"]["hostname"], edited["spec"]["subdomain"]) == ("h", "s")


def test_addresses_that_will_not_resolve_are_warned_about() -> None:
    found = [(each.path, each.code) for each in problems(hosts_job(), builtin()).warnings]

    assert found == [
        ("spec.tasks[2].template.spec.hostname", "JOB-PLUGIN-HOSTNAME"),
        ("spec.tasks[3].template.spec.subdomain", "JOB-PLUGIN-SUBDOMAIN"),
        ("spec.tasks[4].template.spec.subdomain", "JOB-PLUGIN-SUBDOMAIN"),
    ]


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("j" * 59, []),
        ("j" * 60, ['volume "' + "j" * 60 + '-svc"']),
        ("j" * 64, ["Service", "volume"]),
        ("1job", ["Service"]),
        ("my.job", ["Service", "volume"]),
        ("", []),
    ],
)
def test_names_that_cannot_be_made_are_refused(name: str, fragments: list[str]) -> None:
    errors = problems(job(name, task("w"), plugins={"svc": []}), builtin()).errors

    assert len(errors) == len(fragments)
    for error, fragment in zip(errors, fragments, strict=True):
        assert (error.path, error.code) == ("metadata.name", "JOB-PLUGIN-NAME")
        assert fragment in error.message


def variables(job: Job) -> list[str]:
    pod = Wiring(job, builtin()).pod(job.tasks[0], 0, pod_of("j-w-0", "w"))
    return [name for name, _ in env(containers(pod)["c0"])]


def test_hosts_too_long_for_a_variable_are_a_file_only() -> None:
    large = job("j", task("w", 12_000), task("x", 2), plugins={"svc": []})
    data = objects(large)["ConfigMap"]["data"]

    assert len(data["VC_W_HOSTS"]) > HOSTS_VARIABLE_LIMIT
    assert variables(large) == ["VC_W_NUM", "VC_X_HOSTS", "VC_X_NUM"]
    (warning,) = problems(large, builtin()).warnings
    assert (warning.path, warning.code) == ("spec.tasks[0].replicas", "JOB-PLUGIN-SIZE")
    assert "/etc/volcano/w.host" in warning.message


def test_without_variables_there_is_no_limit_to_warn_about() -> None:
    large = job("j", task("w", 12_000), plugins={"svc": ["--inject-hosts-env=false"]})

    assert problems(large, builtin()).warnings == ()


def test_a_config_map_that_would_be_too_large_holds_the_addresses_once() -> None:
    large = job("j" * 40, task("w" * 20, 9_000), task("x", 2), plugins={"svc": []})

    data = objects(large)["ConfigMap"]["data"]

    assert list(data) == [
        "w" * 20 + ".host",
        f"VC_{'W' * 20}_NUM",
        "x.host",
        "VC_X_HOSTS",
        "VC_X_NUM",
    ]
    assert sum(len(key) + len(value) for key, value in data.items()) < CONFIG_MAP_LIMIT
    assert problems(large, builtin()).errors == ()


def test_addresses_that_no_config_map_holds_are_spread_over_several() -> None:
    """One directory still holds them all, and running pods find their variables where they were."""
    tasks = [task("w" * 20 + str(number), 6_000) for number in range(3)]
    large = job("j" * 40, *tasks, task("x", 2), plugins={"svc": []})
    wiring = Wiring(large, builtin())

    made = [each for each in wiring.objects() if each["kind"] == "ConfigMap"]
    pod = wiring.pod(large.tasks[3], 0, pod_of("j-x-0", "x"))

    first = "j" * 40 + "-svc"
    names = [first, f"{first}-1", f"{first}-2"]
    assert [each["metadata"]["name"] for each in made] == names
    assert all(bytes_of(each) <= CONFIG_MAP_LIMIT for each in made)
    assert {"VC_X_HOSTS", "VC_X_NUM"} < set(made[0]["data"])
    (volume,) = pod["spec"]["volumes"]
    assert volume == {
        "name": first,
        "projected": {
            "sources": [
                {"configMap": {"name": first}},
                *({"configMap": {"name": name, "optional": True}} for name in names[1:]),
            ],
        },
    }
    files = {key: text for each in made for key, text in each["data"].items() if ".host" in key}
    assert files == {f"{each.name}.host": "\n".join(addresses(large, each)) for each in large.tasks}
    references = dict(env(containers(pod)["c0"]))
    assert references["VC_X_HOSTS"] == (first, "VC_X_HOSTS")
    assert problems(large, builtin()).errors == ()


def test_variables_come_from_the_first_config_map_or_not_at_all() -> None:
    """Were they in another, a pod could not start again once the Job has shrunk and that one is gone."""
    tasks = [task(f"{'w' * 20}{number:02}", 700) for number in range(16)]
    large = job("j" * 40, *tasks, plugins={"svc": []})
    wiring = Wiring(large, builtin())

    made = [each for each in wiring.objects() if each["kind"] == "ConfigMap"]
    pod = wiring.pod(large.tasks[0], 0, pod_of("j-w-0", tasks[0]["name"]))

    assert len(made) > 1
    assert all(bytes_of(each) <= CONFIG_MAP_LIMIT for each in made)
    references = [source for _, source in env(containers(pod)["c0"])]
    assert {name for name, _ in references} == {made[0]["metadata"]["name"]}
    assert {key for _, key in references} <= set(made[0]["data"])
    told = {each.path for each in problems(large, builtin()).warnings}
    without = {
        f"spec.tasks[{number}].replicas"
        for number in range(16)
        if f"VC_{tasks[number]['name'].upper()}_HOSTS" not in made[0]["data"]
    }
    assert told == without
    assert 0 < len(without) < 16


def test_a_task_that_no_config_map_holds_is_a_file_in_parts() -> None:
    large = job("j" * 40, task("w" * 20, 25_000), plugins={"svc": ["--inject-hosts-env=false"]})

    made = [each for each in Wiring(large, builtin()).objects() if each["kind"] == "ConfigMap"]

    file = "w" * 20 + ".host"
    parts = {key: text for each in made for key, text in each["data"].items() if file in key}
    assert list(parts) == [f"{file}.0001", f"{file}.0002", f"{file}.0003"]
    assert "".join(parts.values()).split("\n") == addresses(large, large.tasks[0])
    assert all(bytes_of(each) <= CONFIG_MAP_LIMIT for each in made)
    (warning,) = problems(large, builtin()).warnings
    assert f"cat /etc/volcano/{file}.*" in warning.message


def test_more_than_a_node_should_hold_is_refused() -> None:
    large = job("j" * 40, task("w" * 20, 130_000), plugins={"svc": []})

    (error,) = problems(large, builtin()).errors

    assert (error.path, error.code) == ("spec.tasks", "JOB-PLUGIN-SIZE")


def bytes_of(config_map: Raw) -> int:
    return sum(len(key) + len(text) for key, text in config_map["data"].items())
