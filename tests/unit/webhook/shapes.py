"""Hypothesis strategies: Jobs of every shape, and JSON of any."""

from typing import Any

from hypothesis import strategies as st

Raw = dict[str, Any]

NAMES = st.sampled_from(["a", "b", "ps", "worker", "default0", "default1", "My_Task", "x" * 70, ""])
COUNTS = st.one_of(st.none(), st.integers(-2, 9), st.just(2**40))
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["default", "root", "1", "500m", "10%", "/a/b", "1h"]),
)
FIELDS = [
    "action", "affinity", "annotations", "managedFields", "minMember", "minResources", "minTaskMember",
    "labelSelector", "matchLabelKeys", "minSubGroups", "subGroupSize",
    "priorityClassName", "nodeSelector", "tolerations", "schedulingGates", "fieldsV1", "operation",
    "kubectl.kubernetes.io/last-applied-configuration", "volcano.sh/resource-group",
    "capability", "containers", "deletionTimestamp", "dependsOn",
    "deserved", "event", "events", "exitCode", "guarantee", "highestTierAllowed", "highestTierName",
    "hostNetwork", "image", "initContainers", "labels", "limits", "maxRetry", "metadata", "minAvailable",
    "minPartitions", "mountPath", "name", "namespace", "networkTopology", "parent", "partitionPolicy",
    "partitionSize", "plugins", "policies", "queue", "replicas", "requests", "resource", "resources",
    "schedulerName", "spec", "state", "status", "subGroupPolicy", "svc", "task-topology", "tasks",
    "template", "tensorflow", "timeout", "topologyPolicy", "totalPartitions", "volumes",
    "flows", "targets", "patch", "jobSpec", "jobTemplate", "schedule", "timeZone", "members", "selector",
    "exactMatch", "regexMatch", "labelMatch", "matchLabels", "matchExpressions", "pattern", "tier",
    "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights", "volcano.sh/jdb-min-available", "cpu",
]  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text(max_size=6)), inner, max_size=6),
    ),
    max_leaves=30,
)
OBJECTS = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "kind"]), JSON, max_size=4)


def fields(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Raw]:
    """Objects with these fields, the latter present or not, and with one that nobody knows."""
    unknown = {"fromTheFuture": st.sampled_from([1, [1], {"a": {"b": None}}])}
    return st.fixed_dictionaries(required, optional=optional | unknown)


def _topology() -> st.SearchStrategy[Raw]:
    return fields(
        {}, {"mode": st.just("hard"), "highestTierAllowed": COUNTS, "highestTierName": NAMES}
    )


def _policy() -> st.SearchStrategy[Raw]:
    events = st.sampled_from(["*", "PodFailed", "PodEvicted", "PodFaild", "OutOfSync", ""])
    return fields(
        {},
        {
            "event": events,
            "events": st.one_of(st.none(), st.lists(events, max_size=3)),
            "exitCode": st.one_of(st.none(), st.integers(-1, 2), st.sampled_from([256, 2**40])),
            "action": st.sampled_from(["RestartJob", "RestartPartition", "Nope", ""]),
            "timeout": st.one_of(st.none(), st.sampled_from(["1h", "60m", "0s", "-5m", "soon"])),
        },
    )


def _template() -> st.SearchStrategy[Raw]:
    container = fields(
        {},
        {
            "name": NAMES,
            "image": st.sampled_from(["busybox", ""]),
            "resources": st.fixed_dictionaries(
                {}, optional={"limits": JSON, "requests": st.dictionaries(NAMES, SCALARS)}
            ),
            "volumeMounts": st.one_of(
                JSON, st.just([{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/b"}])
            ),
        },
    )
    spec = fields(
        {},
        {
            "containers": st.lists(container, max_size=3),
            "initContainers": st.one_of(JSON, st.lists(container, max_size=2)),
            "hostNetwork": st.one_of(st.none(), st.booleans()),
            "dnsPolicy": st.one_of(st.none(), st.sampled_from(["", "Default"])),
            "hostname": NAMES,
            "priorityClassName": NAMES,
        },
    )
    return fields({}, {"metadata": JSON, "spec": spec})


def _task() -> st.SearchStrategy[Raw]:
    return fields(
        {},
        {
            "name": NAMES,
            "replicas": COUNTS,
            "minAvailable": COUNTS,
            "maxRetry": COUNTS,
            "template": _template(),
            "policies": st.lists(_policy(), max_size=3),
            "topologyPolicy": st.sampled_from(["", "none", "restricted"]),
            "dependsOn": st.one_of(
                st.none(),
                fields({}, {"name": st.lists(NAMES, max_size=3), "iteration": st.just("any")}),
            ),
            "partitionPolicy": st.one_of(
                st.none(),
                fields(
                    {},
                    {
                        "totalPartitions": st.integers(-1, 3),
                        "partitionSize": st.integers(-1, 3),
                        "minPartitions": st.integers(-1, 3),
                        "networkTopology": _topology(),
                    },
                ),
            ),
        },
    )


def _plugins() -> st.SearchStrategy[Raw]:
    names = st.sampled_from(
        ["svc", "env", "tensorflow", "mpi", "pytorch", "ray", "task-topology", "nope"]
    )
    arguments = st.lists(
        st.sampled_from(
            [
                "--port=2222",
                "--worker=worker",
                "--master",
                "ps",
                "--affinity=[[ps, worker]]",
                "x",
                "",
            ]
        ),
        max_size=2,
    )
    return st.dictionaries(names, arguments, max_size=4)


JOBS: st.SearchStrategy[Raw] = fields(
    {
        "metadata": fields(
            {},
            {
                "name": NAMES,
                "generateName": NAMES,
                "annotations": st.sampled_from([{}, {"a": "b"}, None]),
                "managedFields": st.lists(
                    fields(
                        {},
                        {
                            "operation": st.sampled_from(["Apply", "Update"]),
                            "fieldsV1": st.sampled_from(
                                [None, 1, {"f:spec": {}}, {"f:spec": {"f:minAvailable": {}}}]
                            ),
                        },
                    ),
                    max_size=2,
                ),
            },
        )
    },
    {
        "spec": fields(
            {},
            {
                "queue": st.one_of(st.none(), st.sampled_from(["", "default", "root", "gone"])),
                "schedulerName": st.one_of(st.none(), st.sampled_from(["", "volcano", "other"])),
                "maxRetry": COUNTS,
                "minAvailable": COUNTS,
                "minSuccess": COUNTS,
                "ttlSecondsAfterFinished": COUNTS,
                "runningEstimate": st.sampled_from(["1h", "0", "soon"]),
                "priorityClassName": NAMES,
                "plugins": st.one_of(st.none(), _plugins()),
                "policies": st.lists(_policy(), max_size=3),
                "networkTopology": _topology(),
                "tasks": st.one_of(st.none(), st.lists(_task(), max_size=4)),
                "volumes": st.lists(
                    fields(
                        {},
                        {
                            "mountPath": st.sampled_from(["", "/a", "/b:ro", "/etc/volcano"]),
                            "volumeClaimName": NAMES,
                            "volumeClaim": st.one_of(
                                st.none(),
                                st.fixed_dictionaries(
                                    {},
                                    optional={
                                        "accessModes": st.one_of(
                                            JSON, st.just(["ReadWriteOnce", "ReadWriteOncePod"])
                                        ),
                                        "resources": st.one_of(
                                            JSON,
                                            st.fixed_dictionaries(
                                                {
                                                    "requests": st.fixed_dictionaries(
                                                        {"storage": SCALARS}
                                                    )
                                                }
                                            ),
                                        ),
                                        "storageClassName": SCALARS,
                                        "volumeMode": SCALARS,
                                    },
                                ),
                            ),
                        },
                    ),
                    max_size=2,
                ),
            },
        )
    },
)
"""Jobs whose fields have the right types and any values."""
