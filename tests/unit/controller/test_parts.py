"""The small parts: owners, patches, notes of restarts, Commands, volumes' claims, usability."""

from typing import Any

import msgspec
import pytest

from pumice.api.commands import Command, targets
from pumice.api.jobs import Job
from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import ObjectMeta
from pumice.controller import objects
from pumice.controller.jobs.due import next_order
from pumice.controller.jobs.podsets import PodNames
from pumice.controller.jobs.restart_targets import RESUME, WHOLE, Restart, parse
from pumice.controller.jobs.subject import UnusableError, min_available, read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.objects import NameConflict, UnknownKindError, owned, settle
from pumice.controller.plan import (
    CreateObject,
    DeleteObject,
    Plan,
    RequeueAfter,
    contains,
    difference,
)
from tests.kit.builders import job, task

Raw = dict[str, Any]
META = ObjectMeta(name="train", namespace="default", uid="u1")
X = PodNames(read(job("x", [task("a", 10), task("a-2", 1)])))


# Merge patches


@pytest.mark.parametrize(
    ("stored", "wanted", "patch"),
    [
        ({"a": 1, "more": 2}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"spec": {"x": 1}}, {"spec": {"y": 2}}, {"spec": {"y": 2}}),
        ({"ports": [{"p": 1, "nodePort": 9}]}, {"ports": [{"p": 1}]}, {}),
        ({"ports": [{"p": 1}]}, {"ports": [{"p": 1}, {"p": 2}]}, {"ports": [{"p": 1}, {"p": 2}]}),
        ({}, {"empty": "", "no": False, "none": [], "map": {}}, {}),
        ({"flag": True}, {"flag": False}, {"flag": False}),
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "1"}}, {"data": {"b": None}}),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}, {}),
        ({"data": "text"}, {"data": {"a": "1"}}, {"data": {"a": "1"}}),
    ],
)
def test_difference(stored: Raw, wanted: Raw, patch: Raw) -> None:
    assert difference(stored, wanted, ("data",)) == patch


def test_what_is_wanted_contains_itself() -> None:
    value = {"a": [{"b": {"c": 1}}], "d": "x"}
    assert contains(value, value)


# Objects of plugins


def _config_map(owner_uid: str | None = "u1", data: Raw | None = None) -> Raw:
    (made,) = owned(META, [_manifest()])
    made["metadata"] |= {"uid": "c1", "resourceVersion": "3"}
    made["data"] = {"key": "value"} if data is None else data
    if owner_uid is None:
        del made["metadata"]["ownerReferences"]
    else:
        made["metadata"]["ownerReferences"][0]["uid"] = owner_uid
    return made


def _manifest() -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "train-svc", "namespace": "default"},
        "data": {"key": "value"},
    }


def test_what_is_missing_is_created_as_the_jobs_own() -> None:
    (step,) = settle(META, owned(META, [_manifest()]), []).creates
    assert isinstance(step, CreateObject)
    meta = step.manifest["metadata"]
    assert meta["ownerReferences"][0] == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert meta["labels"]["volcano.sh/job-name"] == "train"


def test_what_is_there_is_left_alone_and_what_differs_is_patched() -> None:
    wanted = owned(META, [_manifest()])
    assert settle(META, wanted, [_config_map()]).updates == ()
    (step,) = settle(META, wanted, [_config_map(data={"old": "x"})]).updates
    assert (step.kind, step.name) == (CONFIG_MAP, "train-svc")
    assert step.patch == {
        "data": {"key": "value", "old": None},
        "metadata": {"uid": "c1", "resourceVersion": "3"},
    }


@pytest.mark.parametrize("owner", [None, "another"])
def test_an_object_of_another_owner_is_reported_and_never_touched(owner: str | None) -> None:
    wanted = owned(META, [_manifest()])
    present = [_config_map(owner)]
    found = settle(META, wanted, present)
    assert (found.creates, found.updates) == ((), ())
    assert found.conflicts == (
        NameConflict("ConfigMap", "train-svc", "Job train" if owner else "no controller"),
    )
    assert "ConfigMap train-svc exists" in found.conflicts[0].message
    assert objects.remove(META, wanted, present) == []


@pytest.mark.parametrize(
    ("name", "owner", "goes"),
    [
        ("train-svc-1", "u1", True),
        ("train-svc-12", "u1", True),
        ("train-svc-1", "another", False),
        ("train-svc-1", None, False),
        ("train-svc-x", "u1", False),
        ("train-mpi-1", "u1", False),
    ],
)
def test_config_maps_over_which_nothing_is_spread_any_more_go(
    name: str, owner: str | None, goes: bool
) -> None:
    wanted = owned(META, [_manifest()])
    other = _config_map(owner)
    other["metadata"]["name"] = name
    gone = [DeleteObject(CONFIG_MAP, "default", name, "c1")] if goes else []
    assert objects.spare(META, wanted, [_config_map(), other]) == gone
    first = DeleteObject(CONFIG_MAP, "default", "train-svc", "c1")
    assert objects.remove(META, wanted, [_config_map(), other]) == [first, *gone]
    other["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert objects.spare(META, wanted, [_config_map(), other]) == []


def test_a_kind_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(UnknownKindError, match="batch/v1 CronJob"):
        owned(META, [{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}}])


def test_claims_are_made_once_and_kept() -> None:
    spec = {"accessModes": ["ReadWriteMany"]}
    subject = read(
        job(
            uid="u1",
            volumes=[
                {"mountPath": "/data", "volumeClaim": spec},
                {"mountPath": "/x", "volumeClaimName": "c"},
            ],
        )
    )
    (claim,) = owned(subject.metadata, wanted_claims(subject))
    assert claim["spec"] == spec
    assert claim["metadata"]["name"].startswith("train-pvc-")
    changed = claim | {"spec": spec | {"volumeName": "pv"}}
    changed["metadata"] |= {"uid": "p1", "resourceVersion": "1"}
    assert settle(subject.metadata, [claim], [changed]).updates == ()
    assert objects.remove(subject.metadata, [claim], [changed]) == []


# Restarts


@pytest.mark.parametrize(
    "restart",
    [
        WHOLE,
        RESUME,
        Restart(tasks=frozenset({"a", "b"})),
        Restart(partitions=frozenset({("a", "2")})),
        Restart(pods=frozenset({"x-a-0"})),
        Restart(pods=frozenset({"x-a-0", "x-a-1", "x-a-2", "x-a-9", "x-a-2-0"})),
        Restart(pods=frozenset({"x-a-0", "x-a-1", "odd", "x-a-01", "x-a-"})),
        Restart(tasks=frozenset({"b"}), pods=frozenset({"x-a-0"})),
    ],
)
def test_a_note_reads_as_it_was_written(restart: Restart) -> None:
    assert parse(restart.note(X), X) == restart


@pytest.mark.parametrize("note", ["", "nonsense", "task", "pod/a/b/c"])
def test_an_unreadable_note_means_the_whole_job(note: str) -> None:
    assert parse(note, X) == WHOLE


# Commands


def _command(named: str = "c", action: str = "AbortJob", **target: Any) -> Command:
    whole = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"} | target
    return msgspec.convert(
        {
            "metadata": {
                "name": named,
                "uid": f"uid-{named}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "action": action,
            "target": whole,
        },
        Command,
    )


def _job(**status: Any) -> Job:
    return read(job(uid="u1", status=status))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ({}, "train"),
        ({"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1"}, None),
        ({"apiVersion": "batch/v1"}, None),
        ({"name": ""}, None),
    ],
)
def test_only_commands_for_our_jobs_count(target: Raw, name: str | None) -> None:
    assert targets(_command(**target)) == name


def test_commands_are_taken_oldest_first_then_by_name() -> None:
    order = next_order(_job(), [_command("b"), _command("a", "ResumeJob"), _command("c")])
    assert order is not None
    assert (order.command.metadata.name, order.action) == ("a", "ResumeJob")


def test_a_command_for_an_earlier_job_of_the_name_is_refused() -> None:
    order = next_order(_job(), [_command(uid="u0")])
    assert order is not None
    assert order.action == ""
    assert "earlier Job" in order.refusal


def test_a_command_that_was_carried_out_is_only_deleted() -> None:
    order = next_order(_job(controlledResources={"pumice.dev/command": "uid-c"}), [_command()])
    assert order is not None
    assert (order.action, order.refusal) == ("", "")


def test_a_command_with_an_unknown_action_is_refused_with_a_hint() -> None:
    order = next_order(_job(), [_command(action="abortjob")])
    assert order is not None
    assert 'did you mean "AbortJob"' in order.refusal


def test_a_command_cannot_name_a_pod() -> None:
    order = next_order(_job(), [_command(action="RestartPod")])
    assert order is not None
    assert "names none" in order.refusal


def test_commands_for_others_are_not_ours() -> None:
    assert next_order(_job(), [_command(name="other")]) is None


# Jobs that cannot be used


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (job(tasks=[]), "spec.tasks is empty"),
        (
            job(tasks=[task("a"), task("b", template={})]),
            r"spec.tasks\[1\].template.spec.containers",
        ),
        (
            job(tasks=[task("a"), task("a")]),
            r"spec.tasks\[1\].name: 'a' is the name of spec.tasks\[0\]",
        ),
        (job(tasks=[task(replicas=None) | {"replicas": "two"}]), "cannot be read"),
        (job(tasks=[task(spec={"containers": ["x"]})]), r"containers\[0\] must be an object"),
        (job(tasks=[task(spec={"initContainers": [1]})]), r"initContainers\[0\] must be an object"),
    ],
)
def test_jobs_that_cannot_be_used_say_why(manifest: Raw, problem: str) -> None:
    with pytest.raises(UnusableError, match=problem):
        read(manifest)


def test_what_admission_fills_in_is_filled_in() -> None:
    subject = read(job(tasks=[task("", 2), task("x", 3, minAvailable=1)]))
    assert [each.name for each in subject.tasks] == ["default0", "x"]
    assert min_available(subject) == 3
    assert min_available(read(job(minAvailable=0))) == 0


# Plans


def test_a_plan_that_only_waits_is_empty() -> None:
    assert not Plan.of([], [RequeueAfter(3)])
    assert Plan.of([CreateObject(CONFIG_MAP, {})])
