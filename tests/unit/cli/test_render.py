"""`pumice render`: every object of a Job, from the file alone."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.cli.files import checking
from pumice.cli.render import REDACTED, _redacted
from pumice.plugins import JobPlugin, builtin
from tests.kit.builders import job, queue, task
from tests.unit.cli.conftest import Pumice

EXAMPLES = Path(__file__).parents[3] / "examples"


def kinds(objects: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in objects:
        found[each["kind"]] = found.get(each["kind"], 0) + 1
    return found


def test_a_job_with_a_generated_name(pumice: Pumice) -> None:
    unnamed = job(tasks=[task("w")])
    unnamed["metadata"] = {"generateName": "sweep-"}
    ran = pumice("render", "-", "-o", "json", stdin=json.dumps(unnamed))
    assert ran.code == 0
    names = [each["metadata"]["name"] for each in ran.json["items"]]
    assert names == ["sweep-00001-00000000-0000-0000-0000-000000000000", "sweep-00001-w-0"]


def test_every_object_of_a_job(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLES / "tensorflow.yaml")
    assert ran.code == 0
    objects = list(yaml.safe_load_all(ran.out))
    assert kinds(objects) == {
        "ConfigMap": 2,
        "Service": 1,
        "NetworkPolicy": 1,
        "PodGroup": 1,
        "Pod": 6,
    }
    worker = next(each for each in objects if each["metadata"]["name"] == "train-worker-3")
    variables = {
        each["name"]: each.get("value", "") for each in worker["spec"]["containers"][0]["env"]
    }
    assert json.loads(variables["TF_CONFIG"])["task"] == {"type": "worker", "index": 3}
    assert worker["spec"]["hostname"] == "train-worker-3"


def test_json_is_a_list_of_the_same(pumice: Pumice) -> None:
    as_json = pumice("render", EXAMPLES / "tensorflow.yaml", "-o", "json").json
    assert as_json["kind"] == "List"
    as_yaml = pumice("render", EXAMPLES / "tensorflow.yaml").out
    assert as_json["items"] == list(yaml.safe_load_all(as_yaml))


def test_the_same_job_gives_the_same_objects(pumice: Pumice) -> None:
    first, second = (pumice("render", EXAMPLES / "tensorflow.yaml").out for _ in range(2))
    assert first == second


def test_a_refused_job_is_not_rendered(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLES / "bad-job.yaml", EXAMPLES / "tensorflow.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert (
        "Job/default/bad is refused: spec.plugins.tensorbaord: unable to find job plugin" in ran.err
    )


def test_other_objects_are_state(pumice: Pumice, tmp_path: Path) -> None:
    priorities = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
    }
    text = "\n".join(json.dumps(each) for each in (queue("q"), priorities, job(queue="q")))
    ran = pumice("render", "-", "-o", "json", stdin=text)
    assert ran.code == 0
    assert kinds(ran.json["items"]) == {"PodGroup": 1, "Pod": 1}


def test_warnings_are_reported_beside_the_objects(pumice: Pumice) -> None:
    wanted = job(tasks=[task()], plugins={"svc": ["--nonsense"]})
    ran = pumice("render", "-", stdin=json.dumps(wanted))
    assert ran.code == 0
    assert "Job/default/train: warning: spec.plugins.svc[0]" in ran.err


def test_a_file_without_a_job_is_a_mistake(pumice: Pumice) -> None:
    ran = pumice("render", "-", stdin=json.dumps(queue("q")))
    assert ran.code == 2
    assert "there is no Job in -" in ran.err


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_secrets_keep_their_keys_and_lose_their_values(field: str) -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, field: {"id_rsa": "c2VjcmV0"}}
    assert _redacted(secret) == secret | {field: {"id_rsa": REDACTED}}
    config = {"kind": "ConfigMap", "data": {"a": "b"}}
    assert _redacted(config) is config


def test_an_indexed_job_becomes_what_its_plugins_want_and_wired_pods(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLES / "indexed-job-pytorch.yaml", "-o", "json")
    assert ran.code == 0
    objects = ran.json["items"]
    assert kinds(objects) == {"ConfigMap": 1, "Service": 1, "NetworkPolicy": 1, "Pod": 4}
    [service] = [each for each in objects if each["kind"] == "Service"]
    [owner] = service["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("batch/v1", "Job", "resnet")
    pods = [each for each in objects if each["kind"] == "Pod"]
    for index, pod in enumerate(pods):
        variables = {
            each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]
        }
        assert (variables["RANK"], variables["MASTER_ADDR"]) == (str(index), "resnet-0.resnet")
        labels = pod["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"resnet-{index}", "resnet")


def test_a_job_set_becomes_wired_pods_whose_keys_are_not_shown(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLES / "jobset-mpi.yaml", "-o", "json")
    objects = ran.json["items"]
    assert kinds(objects) == {"ConfigMap": 2, "NetworkPolicy": 1, "Secret": 1, "Pod": 5}
    [secret] = [each for each in objects if each["kind"] == "Secret"]
    assert set(secret["data"].values()) == {REDACTED}
    launcher = next(each for each in objects if each["metadata"]["name"] == "pi-launcher-0-0")
    variables = {
        each["name"]: each.get("value") for each in launcher["spec"]["containers"][0]["env"]
    }
    assert (variables["MPI_HOST"] or "").split(",")[-1] == "pi-node-1-1.pi"
    assert launcher["spec"]["subdomain"] == "pi"


def test_an_indexed_job_that_cannot_be_wired_is_refused(pumice: Pumice) -> None:
    text = (EXAMPLES / "indexed-job-pytorch.yaml").read_text().replace('"pytorch"', '"pytroch"')
    ran = pumice("render", "-", stdin=text)
    assert ran.code == 1
    assert 'did you mean "pytorch"' in ran.err
    assert "POD-PLUGINS-FORM" in ran.err


def clusters(ran: Any) -> list[Any]:
    """What TF_CONFIG says of the cluster, a pod each."""
    pods = [each for each in ran.json["items"] if each["kind"] == "Pod"]
    found = [pod["spec"]["containers"][0]["env"] for pod in pods]
    texts = [each["value"] for env in found for each in env if each["name"] == "TF_CONFIG"]
    return [json.loads(each)["cluster"] for each in texts]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), {"ps": ["train-ps-0.train:2222"], "worker": ["train-extra-0.train:2222"]}),
        (("--set", "strict-upstream=true"), {"ps": ["train-ps-0.train:0"]}),
        (("--set-plugins", "strict-upstream=true"), {"ps": ["train-ps-0.train:0"]}),
        (
            ("--set", "strict-upstream=true", "--set-plugins", "strict-upstream=false"),
            {"ps": ["train-ps-0.train:2222"], "worker": ["train-extra-0.train:2222"]},
        ),
    ],
    ids=["pumice", "strict", "strict plugins", "strict admission"],
)
def test_plugins_wire_as_strictly_as_admission_judges(
    pumice: Pumice, flags: tuple[str, ...], expected: Any
) -> None:
    words = ["--ps=ps", "--port=abc", "--worker=extra"]
    wanted = job(tasks=[task("ps"), task("extra")], plugins={"tensorflow": words})
    ran = pumice("render", "-", "-o", "json", *flags, stdin=json.dumps(wanted))
    assert ran.code == 0
    assert clusters(ran)[0] == expected


def test_plugins_have_the_settings_of_the_cluster(pumice: Pumice) -> None:
    waiting = ["--wait-workers-enabled"]
    wanted = job(tasks=[task("master"), task("worker")], plugins={"mpi": waiting})
    flags = ("--set-plugins", "wait-image=registry.example/busybox:1")
    ran = pumice("render", "-", "-o", "json", *flags, stdin=json.dumps(wanted))
    assert ran.code == 0
    images = [
        each["image"]
        for pod in ran.json["items"]
        for each in (pod["spec"].get("initContainers") or () if pod["kind"] == "Pod" else ())
    ]
    assert images == ["registry.example/busybox:1"]


def test_a_setting_of_plugins_that_there_is_not_is_a_mistake(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLES / "tensorflow.yaml", "--set-plugins", "wait-imge=x")
    assert (ran.code, ran.out) == (2, "")
    assert '--set-plugins: wait-imge: unknown key (did you mean "wait-image"?)' in ran.err


@pytest.mark.parametrize(
    ("method", "answer"),
    [("pod_edits", 7), ("for_job", None), ("objects", [7]), ("secrets", [1]), ("check", None)],
)
def test_a_plugin_that_breaks_is_one_line_with_its_name(
    pumice: Pumice, monkeypatch: pytest.MonkeyPatch, method: str, answer: Any
) -> None:
    members = {"name": "mine", "summary": "Breaks.", method: lambda *_: answer}
    plugin: JobPlugin = type("Mine", (JobPlugin,), members)()
    registry = builtin().with_plugin(plugin, "pumice-mine (mine:Mine)")
    monkeypatch.setattr(checking, "registry", lambda: registry)
    ran = pumice("render", "-", stdin=json.dumps(job(plugins={"mine": []})))
    assert (ran.code, ran.out) == (1, "")
    [line] = ran.err.splitlines()
    assert line.startswith("Job/default/train")
    assert f'plugin "mine" of pumice-mine (mine:Mine): {method} gives ' in line
