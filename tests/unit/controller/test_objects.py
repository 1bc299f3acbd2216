"""Objects of a Job: made as its own, kept current, and left alone where they are another's."""

from typing import Any

import pytest

from pumice.api.kinds import CONFIG_MAP
from pumice.api.meta import ObjectMeta
from pumice.controller import objects
from pumice.controller.jobs.subject import read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.objects import NameConflict, UnknownKindError, owned, settle
from pumice.controller.plan import CreateObject, DeleteObject
from tests.kit.builders import job

Raw = dict[str, Any]
META = ObjectMeta(name="train", namespace="default", uid="u1")


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
