"""Pods of other controllers: what the tables cannot say."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api.kinds import INDEXED_JOB
from pumice.plugins import PluginSettings, builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Overlay, Snapshot
from tests.unit.plugins.test_other_owners import manifest, owner_of, pod_of
from tests.unit.webhook.reviewing import answer, patched, request, reraise, review

Raw = dict[str, Any]

PATH = "/pods/mutate"
SHAPE = {"kind": "Job", "name": "train", "completions": 3, "plugins": "pytorch"}
KEY = (INDEXED_JOB, "ns", "train")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "0"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
PLACES = (
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("metadata", "annotations", "pumice.dev/plugins"),
    ("metadata", "annotations", "batch.kubernetes.io/job-completion-index"),
    ("spec",),
    ("spec", "containers"),
    ("spec", "initContainers"),
    ("spec", "volumes"),
    ("spec", "subdomain"),
)


def admission(*owners: Raw, **options: Any) -> Admission:
    view = Snapshot.of(owners)
    return Admission(AdmissionSettings(), view, builtin(), on_crash=reraise, **options)


def with_(obj: Raw, where: tuple[str, ...], value: Any) -> Raw:
    *way, last = where
    place = obj
    for key in way:
        place = place.setdefault(key, {})
    place[last] = value
    return obj


@given(st.sampled_from(PLACES), JSON)
def test_no_pod_makes_it_stumble(where: tuple[str, ...], value: Any) -> None:
    pod = with_(pod_of(SHAPE, {"index": 1}), where, value)
    response = answer(admission(manifest(SHAPE)), PATH, request(PATH, pod))
    if response["allowed"]:
        again = patched(pod, response)
        assert "patch" not in answer(admission(manifest(SHAPE)), PATH, request(PATH, again))


@given(
    st.sampled_from(["completions", "completionMode", "template", "parallelism"]) | st.none(), JSON
)
def test_no_owner_makes_it_stumble(field: str | None, value: Any) -> None:
    owner = manifest(SHAPE)
    owner = with_(owner, ("spec", field) if field else ("spec",), value)
    found = judge(admission(), owner)
    assert found.patched == owner


@given(st.sampled_from(["pumice.dev/plugins", "pumice.dev/tasks"]), st.text(max_size=20))
def test_no_annotation_makes_it_stumble(key: str, text: str) -> None:
    owner = manifest(SHAPE)
    owner["spec"]["template"]["metadata"]["annotations"][key] = text
    judge(admission(), owner)
    answer(admission(owner), PATH, request(PATH, pod_of(SHAPE, {"index": 1})))


def test_the_operators_settings_are_kept() -> None:
    shape = SHAPE | {"plugins": '{"pytorch": ["--wait-master-enabled"]}'}
    judging = admission(manifest(shape), plugin_settings=PluginSettings(wait_image="mine:1"))
    pod = pod_of(shape, {"index": 1})
    wired = patched(pod, answer(judging, PATH, request(PATH, pod)))
    assert [each["image"] for each in wired["spec"]["initContainers"]] == ["mine:1"]


def test_an_owner_that_is_not_seen_yet_is_laid_over_the_view() -> None:
    judging = admission()
    body = review(request(PATH, pod_of(SHAPE, {"index": 1})))
    first = judging.answer(PATH, body)
    assert (first.outcome, first.missing_owners) == ("denied", (KEY,))
    view = Overlay(judging.view, {KEY: owner_of(SHAPE)})
    then = judging.answer(PATH, body, view)
    assert (then.outcome, then.missing_owners) == ("patched", ())


@pytest.mark.parametrize("index", [0, 9_999])
def test_a_large_job_is_prepared_once(index: int) -> None:
    shape = SHAPE | {"completions": 10_000, "plugins": "mpi"}
    judging = admission(manifest(shape))
    pod = pod_of(shape, {"index": index})
    first = answer(judging, PATH, request(PATH, pod))
    assert first["allowed"]
    assert len(msgspec.json.encode(patched(pod, first))) < 64 * 1024


@pytest.mark.parametrize(("most", "allowed"), [(2, False), (3, True)])
def test_an_owner_may_ask_for_as_many_pods_as_a_job(most: int, allowed: bool) -> None:
    settings = AdmissionSettings(max_pods_per_job=most)
    judging = Admission(settings, Snapshot.of([manifest(SHAPE)]), builtin(), on_crash=reraise)
    pod = pod_of(SHAPE, {"index": 1})
    assert answer(judging, PATH, request(PATH, pod))["allowed"] is allowed
    errors = [each.message for each in judge(judging, manifest(SHAPE)).errors]
    assert bool(errors) is not allowed
    assert all("expected at most 2 (max-pods-per-job)" in each for each in errors)
