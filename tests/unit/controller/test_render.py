"""Everything that the controller would create, without a cluster."""

import pytest

from pumice.controller.jobs.subject import UnusableError
from pumice.controller.render import render
from pumice.plugins import PluginError, builtin
from tests.kit.builders import job, task
from tests.unit.controller.fake_cluster import FakeCluster


def test_it_shows_what_the_controller_makes_in_the_order_of_making() -> None:
    volumes = [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteMany"]}}]
    manifest = job(
        "train",
        [task("ps", 1, cpu="1"), task("worker", 2)],
        uid="u1",
        plugins={"svc": [], "tensorflow": []},
        volumes=volumes,
        annotations={"note": "x"},
    )
    cluster = FakeCluster(manifest)
    cluster.settle()
    cluster.admit()
    cluster.settle()
    rendered = render(manifest, builtin())
    kinds = [each["kind"] for each in rendered]
    assert kinds == [
        "PersistentVolumeClaim",
        "ConfigMap",
        "Service",
        "NetworkPolicy",
        "ConfigMap",
        "PodGroup",
        *["Pod"] * 3,
    ]
    for each in rendered:
        name = each["metadata"]["name"]
        made = next(
            obj
            for (kind, found), obj in cluster.objects.items()
            if (kind.kind, found) == (each["kind"], name)
        )
        assert (
            made["spec" if "spec" in each else "data"] == each["spec" if "spec" in each else "data"]
        )
        for key, value in each["metadata"].items():
            assert made["metadata"][key] == value


def test_a_job_that_was_never_stored_is_rendered_the_same_twice() -> None:
    manifest = job()
    del manifest["metadata"]["namespace"]
    assert render(manifest, builtin()) == render(manifest, builtin())
    group = render(manifest, builtin())[0]
    assert group["metadata"]["namespace"] == "default"
    assert group["metadata"]["name"].startswith("train-00000000-")


def test_what_cannot_be_rendered_says_why() -> None:
    with pytest.raises(UnusableError, match=r"spec\.tasks is empty"):
        render(job(tasks=[]), builtin())
    with pytest.raises(PluginError, match="tensorflw"):
        render(job(plugins={"tensorflw": []}), builtin())
