"""CRD schemas: pruning, defaults, and errors with all their causes."""

from typing import Any

import pytest

from tests.contract.api import Api
from tests.contract.kinds import (
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOBS,
    POD_GROUPS,
    QUEUES,
    job,
    manifest,
    path,
    queue,
)


async def test_unknown_fields_go_with_a_warning(api: Api, namespace: str) -> None:
    obj = job(spec={"colour": "red", "tasks": [{"name": "t", "size": 1}]}, shape="round")

    answer = await api.create(path(JOBS, namespace), obj)

    body = answer.expect(201)
    assert "shape" not in body
    assert body["spec"]["tasks"] == [{"name": "t"}]
    assert sorted(answer.warnings) == [
        'unknown field "shape"',
        'unknown field "spec.colour"',
        'unknown field "spec.tasks[0].size"',
    ]


async def test_warnings_come_with_a_refusal_too(api: Api, namespace: str) -> None:
    obj = job(spec={"colour": "red", "tasks": [], "queue": "A"})

    answer = await api.create(path(JOBS, namespace), obj)

    answer.refused(422, "Invalid")
    assert answer.warnings == ['unknown field "spec.colour"']


async def test_unknown_fields_are_refused_where_that_is_wanted(api: Api, namespace: str) -> None:
    obj = job(spec={"tasks": [{"name": "t", "size": 1}]})

    strict = await api.create(path(JOBS, namespace), obj, fieldValidation="Strict")
    silent = await api.create(path(JOBS, namespace), obj, fieldValidation="Ignore")

    assert strict.refused(400, "BadRequest")["message"] == (
        'SampleJob in version "v1alpha1" cannot be handled as a SampleJob: strict decoding error: '
        'unknown field "spec.tasks[0].size"'
    )
    assert silent.expect(201)
    assert silent.warnings == []


async def test_pod_templates_keep_what_the_schema_does_not_name(api: Api, namespace: str) -> None:
    container = {"name": "c", "image": "i", "fieldOfTomorrow": {"x": [1, None]}}
    template = {"spec": {"containers": [container], "alsoNew": True}}

    answer = await api.create(
        path(JOBS, namespace),
        job(spec={"tasks": [{"name": "t", "template": template}]}),
        fieldValidation="Strict",
    )

    assert answer.expect(201)["spec"]["tasks"][0]["template"]["spec"] == template["spec"]


async def test_defaults(api: Api, namespace: str) -> None:
    made = (await api.create(path(JOBS, namespace), job(spec={}))).expect(201)
    group = manifest(POD_GROUPS, "SamplePodGroup", "g", spec={"minMember": 1})
    made_group = (await api.create(path(POD_GROUPS, namespace), group)).expect(201)

    assert made["spec"] == {"maxRetry": 3, "queue": "default"}
    assert made_group["spec"] == {"minMember": 1, "queue": "default"}


async def test_null_gives_way_to_a_default_or_goes(api: Api, namespace: str) -> None:
    spec = {"queue": None, "minAvailable": None, "tasks": [{"name": "t", "replicas": None}]}

    made = (await api.create(path(JOBS, namespace), job(spec=spec))).expect(201)

    assert made["spec"] == {"maxRetry": 3, "queue": "default", "tasks": [{"name": "t"}]}


async def test_a_job_inside_another_object_is_defaulted_and_checked(
    api: Api, namespace: str
) -> None:
    template = {"spec": {"queue": None, "tasks": [{"name": "t", "size": 1}]}}
    spec = {"schedule": "@daily", "suspend": None, "timeZone": None, "jobTemplate": template}
    good = manifest(CRON_JOBS, "SampleCronJob", "good", spec=spec)
    worse = {"schedule": 5, "jobTemplate": {"spec": {"minAvailable": -1}}}
    bad = manifest(CRON_JOBS, "SampleCronJob", "bad", spec=worse)

    made = await api.create(path(CRON_JOBS, namespace), good)
    refused = await api.create(path(CRON_JOBS, namespace), bad)

    assert made.expect(201)["spec"] == {
        "schedule": "@daily",
        "timeZone": None,
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": {"queue": "default", "maxRetry": 3, "tasks": [{"name": "t"}]}},
    }
    assert made.warnings == ['unknown field "spec.jobTemplate.spec.tasks[0].size"']
    causes = refused.refused(422, "Invalid")["details"]["causes"]
    assert {cause["field"] for cause in causes} == {
        "spec.schedule",
        "spec.jobTemplate.spec.minAvailable",
    }


async def test_a_part_of_a_job_is_checked_and_not_defaulted(api: Api, namespace: str) -> None:
    flows = [{"name": "a", "patch": {"jobSpec": {"tasks": [{"name": "t"}]}}}]
    good = manifest(JOB_FLOWS, "SampleJobFlow", "good", spec={"flows": flows})
    patched = {"name": "a", "patch": {"jobSpec": {"maxRetry": -1}}}
    bad = manifest(JOB_FLOWS, "SampleJobFlow", "bad", spec={"flows": [patched]})

    made = await api.create(path(JOB_FLOWS, namespace), good)
    refused = await api.create(path(JOB_FLOWS, namespace), bad)

    assert made.expect(201)["spec"] == {"flows": flows}
    [cause] = refused.refused(422, "Invalid")["details"]["causes"]
    assert cause["field"] == "spec.flows[0].patch.jobSpec.maxRetry"


async def test_members_of_a_hypernode(api: Api) -> None:
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
    good = manifest(
        HYPER_NODES, "SampleHyperNode", "contract-good", spec={"tier": 0, "members": [member]}
    )
    wrong = [{"type": "Pod", "selector": {"exactMatch": {"name": "N"}}}]
    bad = manifest(
        HYPER_NODES, "SampleHyperNode", "contract-bad", spec={"tier": -1, "members": wrong}
    )

    made = await api.create(path(HYPER_NODES), good)
    refused = await api.create(path(HYPER_NODES), bad)

    assert made.expect(201)["spec"] == {"tier": 0, "members": [member]}
    causes = refused.refused(422, "Invalid")["details"]["causes"]
    assert {
        "spec.tier",
        "spec.members[0].type",
        "spec.members[0].selector.exactMatch.name",
    } <= {cause["field"] for cause in causes}
    (await api.delete(path(HYPER_NODES, None, "contract-good"))).expect(200)


BAD_SPECS: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    (
        {"minAvailable": -1},
        [
            (
                "spec.minAvailable",
                "FieldValueInvalid",
                "Invalid value: -1: spec.minAvailable in body should be greater than or equal to 0",
            )
        ],
    ),
    (
        {"maxRetry": "x"},
        [
            (
                "spec.maxRetry",
                "FieldValueTypeInvalid",
                'Invalid value: "string": spec.maxRetry in body must be of type integer: "string"',
            )
        ],
    ),
    (
        {"queue": "A"},
        [
            (
                "spec.queue",
                "FieldValueInvalid",
                (
                    'Invalid value: "A": spec.queue in body should match '
                    "'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'"
                ),
            )
        ],
    ),
    (
        {"schedulerName": "x" * 64},
        [
            (
                "spec.schedulerName",
                "FieldValueTooLong",
                "Too long: may not be more than 63 bytes",
            )
        ],
    ),
    (
        {"tasks": []},
        [
            (
                "spec.tasks",
                "FieldValueInvalid",
                "Invalid value: 0: spec.tasks in body should have at least 1 items",
            )
        ],
    ),
    (
        {"tasks": [{"name": "t", "partitionPolicy": {}}]},
        [
            ("spec.tasks[0].partitionPolicy.partitionSize", "FieldValueRequired", "Required value"),
            (
                "spec.tasks[0].partitionPolicy.totalPartitions",
                "FieldValueRequired",
                "Required value",
            ),
        ],
    ),
    (
        {"volumes": [{"mountPath": ""}]},
        [
            (
                "spec.volumes[0].mountPath",
                "FieldValueInvalid",
                (
                    'Invalid value: "": spec.volumes[0].mountPath in body should be at least 1 chars '
                    "long"
                ),
            )
        ],
    ),
    (
        {"tasks": "x", "plugins": {"svc": "y"}},
        [
            (
                "spec.plugins.svc",
                "FieldValueTypeInvalid",
                'Invalid value: "string": spec.plugins.svc in body must be of type array: "string"',
            ),
            (
                "spec.tasks",
                "FieldValueTypeInvalid",
                'Invalid value: "string": spec.tasks in body must be of type array: "string"',
            ),
        ],
    ),
    (
        {"tasks": [None]},
        [
            (
                "spec.tasks[0]",
                "FieldValueTypeInvalid",
                'Invalid value: "null": spec.tasks[0] in body must be of type object: "null"',
            )
        ],
    ),
]


@pytest.mark.parametrize(
    ("spec", "causes"), BAD_SPECS, ids=lambda case: ",".join(case) if isinstance(case, dict) else ""
)
async def test_every_violation_is_a_cause(
    api: Api, namespace: str, spec: dict[str, Any], causes: list[tuple[str, str, str]]
) -> None:
    status = (await api.create(path(JOBS, namespace), job(spec=spec))).refused(422, "Invalid")

    found = sorted(
        (each["field"], each["reason"], each["message"]) for each in status["details"]["causes"]
    )
    assert found == causes
    texts = [f"{field}: {message}" for field, _, message in causes]
    if len(texts) == 1:
        ending = texts[0]
        assert status["message"] == f'SampleJob.contract.pumice.dev "j" is invalid: {ending}'
    assert all(text in status["message"] for text in texts)
    details = {key: status["details"][key] for key in ("name", "group", "kind")}
    assert details == {"name": "j", "group": "contract.pumice.dev", "kind": "SampleJob"}


async def test_enums_name_what_is_supported(api: Api, namespace: str) -> None:
    bad = queue("contract-enum", dequeueStrategy="lifo")

    status = (await api.create(path(QUEUES), bad)).refused(422, "Invalid")

    [cause] = status["details"]["causes"]
    assert cause == {
        "field": "spec.dequeueStrategy",
        "reason": "FieldValueNotSupported",
        "message": 'Unsupported value: "lifo": supported values: "fifo", "traverse"',
    }


async def test_quantities_are_numbers_or_texts(api: Api) -> None:
    good = queue("contract-quantity", capability={"cpu": 1, "memory": "1Gi"})
    bad = queue("contract-bad", capability={"cpu": [], "memory": {}})

    made = (await api.create(path(QUEUES), good)).expect(201)
    status = (await api.create(path(QUEUES), bad)).refused(422, "Invalid")

    assert made["spec"]["capability"] == {"cpu": 1, "memory": "1Gi"}
    fields = {cause["field"] for cause in status["details"]["causes"]}
    assert {"spec.capability.cpu", "spec.capability.memory"} <= fields
    (await api.delete(path(QUEUES, None, "contract-quantity"))).expect(200)


async def test_updates_and_statuses_are_checked_too(api: Api, namespace: str) -> None:
    made = (await api.create(path(JOBS, namespace), job())).expect(201)
    one = path(JOBS, namespace, "j")

    updated = await api.update(one, {**made, "spec": {"minAvailable": -1}})
    status = await api.patch("merge", f"{one}/status", {"status": {"running": "x"}})

    updated.refused(422, "Invalid")
    [cause] = status.refused(422, "Invalid")["details"]["causes"]
    assert cause["field"] == "status.running"


async def test_the_kind_must_be_given_and_right(api: Api, namespace: str) -> None:
    nameless = job()
    del nameless["kind"]

    missing = await api.create(path(JOBS, namespace), nameless)
    other = await api.create(path(JOBS, namespace), job() | {"kind": "Other"})

    missing.refused(400, "BadRequest")
    [cause] = other.refused(422, "Invalid")["details"]["causes"]
    assert (cause["field"], cause["message"]) == (
        "kind",
        'Invalid value: "Other": must be SampleJob',
    )
