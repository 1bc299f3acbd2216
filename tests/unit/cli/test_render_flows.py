"""`pumice render` of JobFlows: their Jobs, from the files alone."""

import json
from pathlib import Path
from typing import Any

from tests.kit.builders import job, task
from tests.unit.cli.conftest import Pumice

Raw = dict[str, Any]

EXAMPLE = Path(__file__).parents[3] / "examples" / "jobflow.yaml"


def template(name: str, **spec: Any) -> Raw:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": job(tasks=[task("worker", 2)], **spec)["spec"],
    }


def job_flow(*flows: Raw) -> Raw:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "default"},
        "spec": {"flows": list(flows)},
    }


def listed(*objects: Raw) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def test_the_jobs_of_the_example(pumice: Pumice) -> None:
    ran = pumice("render", EXAMPLE, "-o", "json")
    assert ran.code == 0
    jobs = [each for each in ran.json["items"] if each["kind"] == "Job"]
    sizes = {each["metadata"]["name"]: each["spec"]["minAvailable"] for each in jobs}
    assert sum(each["kind"] == "Pod" for each in ran.json["items"]) == sum(sizes.values())
    assert sizes == {
        "study-prepare": 1,
        "study-train-small": 2,
        "study-train-large": 4,
        "study-compare": 1,
    }


def test_jobs_are_as_admission_leaves_them(pumice: Pumice) -> None:
    patch = {"jobSpec": {"plugins": {"pytorch": ["--master=worker"]}}}
    files = listed(template("a"), job_flow({"name": "a", "patch": patch}))
    ran = pumice("render", "-", "-o", "json", stdin=files)
    assert ran.code == 0
    kinds = [each["kind"] for each in ran.json["items"]]
    assert kinds[0] == "Job"
    assert kinds.count("Pod") == 2
    assert "svc" in ran.json["items"][0]["spec"]["plugins"]
    assert "Service" in kinds


def test_templates_may_be_in_the_state(pumice: Pumice, tmp_path: Path) -> None:
    (tmp_path / "state.yaml").write_text(json.dumps(template("a")))
    flow = json.dumps(job_flow({"name": "a"}))
    ran = pumice("render", "-", "--state", tmp_path / "state.yaml", "-o", "json", stdin=flow)
    assert [each["kind"] for each in ran.json["items"]] == ["Job", "PodGroup", "Pod", "Pod"]


def test_what_is_missing_is_named(pumice: Pumice) -> None:
    ran = pumice("render", "-", stdin=listed(template("a"), job_flow({"name": "a"}, {"name": "b"})))
    assert ran.code == 1
    assert ran.out == ""
    assert "JobFlow/default/f: flow b: there is no JobTemplate b" in ran.err


def test_a_job_that_is_refused_is_named(pumice: Pumice) -> None:
    flow = job_flow({"name": "a", "patch": {"jobSpec": {"minAvailable": 9}}})
    ran = pumice("render", "-", stdin=listed(template("a"), flow))
    assert ran.code == 1
    assert "Job/default/f-a is refused: spec.minAvailable" in ran.err


def test_lint_warns_of_a_job_that_would_be_refused(pumice: Pumice) -> None:
    flow = job_flow({"name": "b"}, {"name": "a", "patch": {"jobSpec": {"minAvailable": 9}}})
    ran = pumice("lint", "-", stdin=listed(template("a"), flow))
    assert ran.code == 0
    assert "spec.flows[1]: its Job would be refused: spec.minAvailable: " in ran.out
    assert "spec.flows[0]" not in ran.out
    assert "warning" not in pumice("lint", "-", stdin=listed(flow)).out
