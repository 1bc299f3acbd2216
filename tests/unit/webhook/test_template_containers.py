"""Containers of pod templates: the hints in messages, fields that are young, and what no type was checked of."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import Site
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.unit.webhook.shapes import JSON

Raw = dict[str, Any]

SETTINGS = AdmissionSettings()
STATE = Snapshot.of([])
PLUGINS = builtin()
FIELDS = [
    "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "name", "ports",
    "readinessProbe", "resizePolicy", "resources", "restartPolicy", "restartPolicyRules",
    "securityContext", "startupProbe", "terminationMessagePolicy", "volumeDevices", "volumeMounts",
]  # fmt: skip
INNER = [
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "claims", "command", "configMapKeyRef",
    "configMapRef", "containerPort", "devicePath", "divisor", "exec", "exitCodes", "fieldPath", "fieldRef",
    "fileKeyRef", "gmsaCredentialSpec", "grpc", "hostIP", "hostPort", "hostProcess", "httpGet", "httpHeaders",
    "key", "limits", "localhostProfile", "mountPath", "mountPropagation", "name", "port", "postStart",
    "preStop", "privileged", "procMount", "protocol", "readOnly", "recursiveReadOnly", "request", "requests",
    "resource", "resourceFieldRef", "runAsUser", "runAsUserName", "seccompProfile", "seconds", "sleep",
    "subPath", "subPathExpr", "successThreshold", "tcpSocket", "type", "valueFrom", "values",
    "volumeName", "windowsOptions",
]  # fmt: skip
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-1, 2**70),
        st.floats(allow_nan=False),
        st.sampled_from(["", "a", "cpu", "1", "Localhost", "Bidirectional"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(INNER), inner, max_size=4)
    ),
    max_leaves=8,
)
CONTAINERS = st.one_of(
    st.dictionaries(
        st.sampled_from(FIELDS), st.one_of(ANYTHING, st.lists(ANYTHING, max_size=2)), max_size=6
    ),
    JSON,
)
SPECS = st.fixed_dictionaries(
    {"containers": st.one_of(st.lists(CONTAINERS, max_size=3), JSON)},
    optional={
        "initContainers": st.one_of(st.lists(CONTAINERS, max_size=2), JSON),
        "ephemeralContainers": JSON,
        "hostNetwork": JSON,
        "os": JSON,
        "resourceClaims": JSON,
        "resources": ANYTHING,
        "restartPolicy": JSON,
        "securityContext": ANYTHING,
        "terminationGracePeriodSeconds": JSON,
    },
)


def judged(spec: Raw, **volumes: Raw) -> Case:
    case = Case(SETTINGS, STATE, PLUGINS)
    if volumes:
        spec = spec | {"volumes": list(volumes.values())}
    pod_template(Site(case, "template"), {"spec": spec})
    return case


def messages(**fields: Any) -> str:
    """What is said about a container that is in order but for these fields."""
    spec = {"containers": [{"name": "main", "image": "busybox"} | fields]}
    errors = judged(spec, data={"name": "data"}).errors
    return "\n".join(error.message for error in errors if error.code != "TPL-TYPE")


@settings(deadline=None)
@example({"containers": [{"ports": [{"containerPort": []}, {"protocol": {}}, {"name": [1]}]}]})
@given(SPECS)
def test_no_rule_raises_on_any_containers(spec: Raw) -> None:
    judged(spec)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"imagePullPolicy": "ifnotpresent"}, 'IfNotPresent or Never, found "ifnotpresent" (did you mean "IfNotPresent"?)'),
        ({"volumeMounts": [{"name": "dta", "mountPath": "/a"}]}, 'the pod has no volume "dta" (did you mean "data"?)'),
        ({"env": [{"name": "A", "valueFrom": {"configMapRef": {}}}]}, 'found "configMapRef" (did you mean "configMapKeyRef"?)'),
        ({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodename"}}}]}, '"spec.nodename" is not a field that containers can read (did you mean "spec.nodeName"?)'),
        ({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limit.cpu"}}}]}, 'there is no "limit.cpu" (did you mean "limits.cpu"?)'),
        ({"livenessProbe": {"httpget": {"port": 80}}}, 'found "httpget" (did you mean "httpGet"?)'),
        ({"resources": {"limits": {"memroy": "1Gi"}}}, 'did you mean "memory"?'),
        ({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}, "must be less than or equal to cpu limit of 1500m, found 2"),
        ({"resources": {"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}}}, "3Mi is not positive integer multiple of 2Mi, the size of a page"),
        ({"ports": [{"containerPort": 70000}]}, "must be between 1 and 65535, inclusive, found 70000"),
        ({"restartPolicy": "allways"}, 'found "allways" (did you mean "Always"?)'),
    ],
)  # fmt: skip
def test_messages_say_what_was_found_and_what_would_be_right(fields: Raw, message: str) -> None:
    assert message in messages(**fields)


def test_a_missing_field_and_an_unknown_value_have_the_reasons_of_kubernetes() -> None:
    spec = {
        "containers": [
            {"name": "a", "image": "i", "env": [{}], "imagePullPolicy": "No"},
            {"name": "a", "image": "i", "volumeMounts": [{"name": "x", "mountPath": "/x"}]},
        ]
    }
    assert [(error.code, error.reason) for error in judged(spec).errors] == [
        ("TPL-ENV", "FieldValueRequired"),
        ("TPL-PULL-POLICY", "FieldValueNotSupported"),
        ("TPL-CONTAINER-DUP", "FieldValueDuplicate"),
        ("TPL-MOUNT-VOLUME", "FieldValueNotFound"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"warpDrive": {"speed": 9}},
        {"env": [{"name": "A", "valueFrom": {"oracle": {"question": "why"}}}]},
        {"envFrom": [{"vaultRef": {"name": "v"}}]},
        {"livenessProbe": {"telepathy": {"target": "self"}}},
        {"lifecycle": {"preStop": {"farewell": {}}}},
        {"lifecycle": {"stopSignal": "SIGUSR1"}},
        {"volumeMounts": [{"name": "data", "mountPath": "/a", "encrypted": True}]},
        {"securityContext": {"cloak": {"type": "Full"}}},
    ],
)  # fmt: skip
def test_what_is_younger_than_pumice_passes(fields: Raw) -> None:
    assert messages(**fields) == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"image": 5}, {"ports": "80"}, {"ports": [80]}, {"env": {"A": "b"}}, {"env": [{"name": 5}]},
        {"resources": []}, {"resources": {"limits": ["cpu"]}}, {"resources": {"limits": {"cpu": {}}}},
        {"volumeMounts": [{"name": ["data"], "mountPath": 5}]}, {"livenessProbe": True},
        {"securityContext": {"runAsUser": "1000", "capabilities": ["ALL"]}}, {"restartPolicy": 1},
    ],
)  # fmt: skip
def test_what_has_the_wrong_type_is_left_to_the_check_of_types(fields: Raw) -> None:
    assert messages(**fields) == ""
