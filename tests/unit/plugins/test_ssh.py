"""Plugin `ssh`: its Secret, the client configuration and the files in the pods."""

from typing import Any

import msgspec
import pytest

from pumice.api.jobs import Job
from pumice.plugins import KeySecret, Raw, Wiring, builtin, problems
from pumice.plugins.ssh import LIST_LIMIT, client_config
from tests.kit.tables import table
from tests.unit.plugins.support import containers, job, pod_of, task

TABLE = table("plugins/ssh")
ROWS = [pytest.param(row, id=row["id"]) for row in TABLE["rows"]]
NAMELESS = "JOB-PLUGIN-SUBDOMAIN"
"""What a Job is told that names no plugin svc."""
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def job_of(row: Raw) -> Job:
    plugins = {"ssh": row.get("arguments", [])} | ({"mpi": row["mpi"]} if "mpi" in row else {})
    tasks = [task("m"), task("w", 2), task("z", 2, "fix")]
    for each in tasks:
        containers_of = {"containers": [{"name": "c0"}]}
        each["template"]["spec"] |= containers_of | row.get("spec", {})
    return job("j", *tasks, plugins=plugins)


def secret_of(wiring: Wiring) -> tuple[dict[str, str], KeySecret | None]:
    """Texts of the Secret, and the pair that is to be made for it."""
    found: list[Any] = [each for each in wiring.objects() if each["kind"] == "Secret"]
    (wanted,) = found + wiring.secrets()
    if isinstance(wanted, KeySecret):
        assert (wanted.name, wanted.namespace) == ("j-ssh", "ns")
        return dict(wanted.texts), wanted
    assert wanted["metadata"] == {"name": "j-ssh", "namespace": "ns"}
    return wanted["stringData"], None


@pytest.mark.parametrize("strict_upstream", [False, True], ids=["pumice", "upstream"])
@pytest.mark.parametrize("row", ROWS)
def test_a_job_gets_keys_and_a_configuration(row: Raw, strict_upstream: bool) -> None:
    expected = row | (row.get("upstream", {}) if strict_upstream else {})
    wiring = Wiring(job_of(row), builtin(), strict_upstream=strict_upstream)

    texts, pair = secret_of(wiring)

    if "port" in expected:
        text = TABLE["config"] + ("" if strict_upstream else TABLE["patterns"])
        assert texts["config"] == text.replace("Port N", f"Port {expected['port']}")
    if "given" in expected:
        assert pair is None
        assert {key: texts[key] for key in expected["given"]} == expected["given"]
    if "keys" in expected:
        assert pair is not None
        assert [pair.private_key, *pair.public_keys] == expected["keys"]
        assert pair.algorithm == ("ed25519" if "id_ed25519" in expected["keys"] else "rsa")
    if "mode" in expected:
        pod = wiring.pod(wiring_task(row), 0, pod_of("j-w-0", "w"))
        volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "j-ssh")
        assert volume["secret"]["defaultMode"] == expected["mode"]
        path = expected.get("path", "/keys" if row["id"] == "root" else "/root/.ssh")
        mounts = containers(pod)["c0"]["volumeMounts"]
        found = [each["mountPath"] for each in mounts]
        assert all(each.startswith(path) for each in found)
        assert found == expected.get("files", found)
    if "problem" in row:
        judged = problems(job_of(row), builtin(), strict_upstream=strict_upstream)
        assert judged.errors == ()
        told = [each.message for each in judged.warnings if each.code != NAMELESS]
        # Volcano mounts whatever it is told to, and keeps what is there as well.
        wanted = expected.get("warned", "") if strict_upstream else row["problem"]
        assert wanted in told[0] if wanted else told == []
    if "modes" in expected:
        pod = wiring.pod(wiring_task(row), 0, pod_of("j-w-0", "w"))
        assert {name: key_mode(pod, each) for name, each in containers(pod).items()} == expected[
            "modes"
        ]


def key_mode(pod: Raw, container: Raw) -> int:
    """Mode of the private key in one of its containers."""
    modes = {each["name"]: each["secret"]["defaultMode"] for each in pod["spec"]["volumes"]}
    first: str = container["volumeMounts"][0]["name"]
    mode: int = modes[first]
    return mode


def wiring_task(row: Raw) -> Any:
    return job_of(row).tasks[1]


def test_files_are_mounted_one_by_one_so_that_nothing_is_hidden() -> None:
    train = job("j", task("w", 2), plugins={"ssh": []})

    pod = Wiring(train, builtin()).pod(train.tasks[0], 1, pod_of("j-w-1", "w"))

    (volume,) = pod["spec"]["volumes"]
    assert volume["name"] == volume["secret"]["secretName"] == "j-ssh"
    assert [each["key"] for each in volume["secret"]["items"]] == list(FILES)
    for container in containers(pod).values():
        assert container["volumeMounts"] == [
            {"name": "j-ssh", "mountPath": f"/root/.ssh/{file}", "subPath": f".ssh/{file}"}
            for file in FILES
        ]


def test_volcano_mounts_the_directory() -> None:
    train = job("j", task("w", 2), plugins={"ssh": []})

    pod = Wiring(train, builtin(), strict_upstream=True).pod(
        train.tasks[0], 1, pod_of("j-w-1", "w")
    )

    (mount,) = containers(pod)["i0"]["volumeMounts"]
    assert mount == {"name": "j-ssh", "mountPath": "/root/.ssh", "subPath": ".ssh"}


def test_keys_may_stand_in_a_secret_of_the_users_own() -> None:
    train = job("j", task("w", 2), plugins={"ssh": ["--ssh-key-secret=mine"]})
    wiring = Wiring(train, builtin())

    pod = wiring.pod(train.tasks[0], 0, pod_of("j-w-0", "w"))

    assert wiring.secrets() == []
    (secret,) = wiring.objects()
    assert list(secret["stringData"]) == ["config"]
    (volume,) = pod["spec"]["volumes"]
    keys, config = volume["projected"]["sources"]
    assert keys["secret"]["name"] == "mine"
    assert [(each["key"], each["path"]) for each in keys["secret"]["items"]] == [
        ("ssh-privatekey", ".ssh/id_rsa"),
        ("ssh-publickey", ".ssh/id_rsa.pub"),
        ("ssh-publickey", ".ssh/authorized_keys"),
    ]
    assert config["secret"] == {
        "name": "j-ssh",
        "items": [{"key": "config", "path": ".ssh/config"}],
    }
    assert [each.code for each in problems(train, builtin()).warnings] == [NAMELESS]


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (
            ["--ssh-private-key=P", "--ssh-public-key=Q"],
            "name the Secret with --ssh-key-secret=<secret>",
        ),
        (["--ssh-private-key=P"], "no pod accepts a connection of another one"),
        (["--ssh-public-key=Q"], "a new pair is made"),
    ],
)
def test_keys_that_every_user_can_read_are_warned_about(
    arguments: list[str], fragment: str
) -> None:
    found = problems(job("j", task("w"), plugins={"ssh": arguments}), builtin())

    assert found.errors == ()
    assert {warning.code for warning in found.warnings} == {"JOB-PLUGIN-SECRET"}
    assert any(fragment in warning.message for warning in found.warnings)


def test_many_pods_are_matched_by_pattern_alone() -> None:
    large = job("j", task("w", 10_000), plugins={"ssh": []})

    text = client_config(large, 22)

    assert len(text) < LIST_LIMIT
    assert "Host j-w-9999\n" not in text
    assert "Host j-w-* !*.*\n  HostName %h.j\n  Port 22\n" in text
    assert "Host j-w-9999\n" in client_config(large, 22, strict_upstream=True)


def test_a_subdomain_of_the_users_own_is_in_the_patterns() -> None:
    text = client_config(job("j", task("w", 1, "", "sub")), 2222)

    assert "Host j-w-* !*.*\n  HostName %h.sub\n" in text
    assert text.endswith("Host *.sub\n  Port 2222\n")


def test_a_job_without_a_name_has_a_configuration_too() -> None:
    """SSH-6."""
    nameless = msgspec.structs.replace(job("", task("worker")))

    assert "Port 2026" in client_config(nameless, 2026)


@pytest.mark.parametrize(
    ("context", "arguments", "warned"),
    [
        ({"fsGroup": 2000}, [], True),
        ({"fsGroup": 2000, "runAsUser": 0}, ["--ssh-key-file-path=/keys"], True),
        ({"fsGroup": 2000}, ["--ssh-key-file-path=/keys"], False),
        ({"fsGroup": 2000, "runAsUser": 1000}, [], False),
        ({"runAsUser": 0}, [], False),
    ],
    ids=["path", "user", "unknown", "other", "none"],
)
def test_an_fs_group_that_opens_roots_key_is_warned_about(
    context: dict[str, int], arguments: list[str], warned: bool
) -> None:
    train = job("j", task("w", 2), plugins={"svc": [], "ssh": arguments})
    train.tasks[0].pod_spec()["securityContext"] = context

    found = problems(train, builtin())

    assert found.errors == ()
    paths = [each.path for each in found.warnings if each.code == "JOB-PLUGIN-SECRET"]
    wanted = ["spec.tasks[0].template.spec.securityContext.fsGroup"]
    assert paths == (wanted if warned else [])
    assert problems(train, builtin(), strict_upstream=True).warnings == ()


def test_the_name_of_a_second_volume_is_looked_at_too() -> None:
    mixed = [{"name": "c0"}, {"name": "c1", "securityContext": {"runAsUser": 1337}}]
    train = job("j" * 57, task("w", containers=mixed), plugins={"svc": [], "ssh": []})

    (error,) = problems(train, builtin()).errors

    assert (error.path, error.code) == ("metadata.name", "JOB-PLUGIN-NAME")
    assert "-ssh-user" in error.message
    assert problems(train, builtin(), strict_upstream=True).errors == ()
