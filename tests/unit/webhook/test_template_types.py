"""Types of pod templates' fields: what is said about them, and what the other rules then see."""

from typing import Any

import pytest

from pumice.webhook.rules.templates import types
from pumice.webhook.rules.templates.pod import pod_template
from pumice.webhook.rules.templates.table import Site
from tests.unit.webhook.template_rows import BASE, judged, relative

Raw = dict[str, Any]


def with_spec(**fields: Any) -> Raw:
    return {"metadata": {}, "spec": {**BASE["spec"], **fields}}


def said(template: Raw) -> dict[str, str]:
    """Message by path."""
    return {relative(each.path): each.message for each in judged(template).errors}


@pytest.mark.parametrize(
    ("template", "path", "message"),
    [
        (
            with_spec(hostNetwork="true"),
            "spec.hostNetwork",
            'json: cannot unmarshal the string "true" into a boolean; leave out the quotes',
        ),
        (
            with_spec(terminationGracePeriodSeconds="30"),
            "spec.terminationGracePeriodSeconds",
            'json: cannot unmarshal the string "30" into an integer; leave out the quotes',
        ),
        (
            with_spec(terminationGracePeriodSeconds="soon"),
            "spec.terminationGracePeriodSeconds",
            'json: cannot unmarshal the string "soon" into an integer',
        ),
        (
            with_spec(terminationGracePeriodSeconds=1.0),
            "spec.terminationGracePeriodSeconds",
            "json: cannot unmarshal the number 1.0 into an integer; write 1",
        ),
        (
            with_spec(priority=2**31),
            "spec.priority",
            "must be between -2147483648 and 2147483647, found 2147483648",
        ),
        (
            with_spec(hostname=5),
            "spec.hostname",
            "json: cannot unmarshal the integer 5 into a string; put it in quotes",
        ),
        (
            with_spec(nodeSelector={"gpu": True}),
            "spec.nodeSelector.gpu",
            "json: cannot unmarshal the boolean true into a string; put it in quotes",
        ),
        (
            with_spec(tolerations={}),
            "spec.tolerations",
            "json: cannot unmarshal an object into a list; write []",
        ),
        (
            with_spec(affinity=[]),
            "spec.affinity",
            "json: cannot unmarshal a list into an object; write {}",
        ),
        (
            with_spec(tolerations=["gpu"]),
            "spec.tolerations[0]",
            'json: cannot unmarshal the string "gpu" into an object',
        ),
        (
            with_spec(hostname=["x" * 100]),
            "spec.hostname",
            "json: cannot unmarshal a list into a string",
        ),
        (
            with_spec(tolerations="x" * 101),
            "spec.tolerations",
            f'json: cannot unmarshal the string "{"x" * 100}…" into a list; put it in brackets',
        ),
        (
            with_spec(overhead={"cpu": False}, runtimeClassName="a"),
            "spec.overhead.cpu",
            "json: cannot unmarshal the boolean false into a quantity such as 500m, 2 or 4Gi",
        ),
        (
            with_spec(volumes=[{"name": "a", "emptyDir": {"sizeLimit": 1e40}}]),
            "spec.volumes[0].emptyDir.sizeLimit",
            'exponents must be at most 30: found "1e+40"; write a quantity such as 500m, 2 or 4Gi',
        ),
    ],
)
def test_a_wrong_type_is_reported_with_what_was_found_and_what_is_right(
    template: Raw, path: str, message: str
) -> None:
    assert said(template) == {path: message}


def test_a_template_that_is_in_order_is_read_as_it_is() -> None:
    assert types.fits(BASE)
    assert types.fits({})
    assert not types.fits(with_spec(hostname=None))
    assert not types.fits(with_spec(fromTheFuture=1))


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("hostnetwork", "hostNetwork"),
        ("toleration", "tolerations"),
        ("imagePullSecret", "imagePullSecrets"),
        ("restart_policy", "restartPolicy"),
        ("hostnameReplacement", ""),
        ("devicesFromTheFuture", ""),
        ("x" * 10_000, ""),
    ],
)
def test_a_field_that_is_not_known_passes_and_is_reported_if_it_is_nearly_known(
    field: str, meant: str
) -> None:
    case = judged(with_spec(**{field: {"a": [None]}}))
    assert case.errors == []
    told = [(relative(each.path), each.code, each.message) for each in case.warnings]
    message = f'there is no field "{field}" (did you mean "{meant}"?)'
    assert told == ([(f"spec.{field}", "TPL-UNKNOWN", message)] if meant else [])


def test_names_that_were_new_once_are_not_taken_for_misspelt_older_ones() -> None:
    """What Kubernetes has added to pods over the years would not have been warned of then."""
    for new, older in (
        ("hostnameOverride", "hostname"),
        ("resourceClaims", "resources"),
        ("hostUsers", "hostIPC"),
        ("schedulingGates", "schedulerName"),
        ("schedulingGroup", "schedulerName"),
        ("setHostnameAsFQDN", "hostname"),
        ("os", "hostPID"),
    ):
        assert not types.alike(new, [older]), new


MOUNTING = {
    "name": "main",
    "image": "busybox",
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}


def test_what_is_unreadable_says_nothing_about_the_rest() -> None:
    """A volume whose name is a list may be the one that is mounted, and so on."""
    template = with_spec(
        containers=[MOUNTING],
        volumes=[{"name": ["data"], "emptyDir": {}}],
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": 1, "minDomains": 1}
        ],
    )
    assert sorted(said(template)) == [
        "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        "spec.volumes[0].name",
    ]


def test_a_name_without_quotes_is_not_guessed() -> None:
    """The mount may be of the volume whose name cannot be read, so it is not reported."""
    for mounted in ("5", "data"):
        container = {**MOUNTING, "volumeMounts": [{"name": mounted, "mountPath": "/data"}]}
        template = with_spec(containers=[container], volumes=[{"name": 5, "emptyDir": {}}])
        assert sorted(said(template)) == ["spec.volumes[0].name"]


def test_other_templates_are_judged_in_full() -> None:
    """A field of a wrong type in one template hides nothing that another one compares."""
    wrong, mounting = with_spec(hostname=5), with_spec(containers=[MOUNTING])
    case = judged(mounting)
    pod_template(Site(case, "spec.tasks[1].template"), wrong)
    pod_template(Site(case, "spec.tasks[2].template"), mounting)
    assert [each.path for each in case.errors] == [
        *(each.path for each in judged(mounting).errors),
        "spec.tasks[1].template.spec.hostname",
        "spec.tasks[2].template.spec.containers[0].volumeMounts[0].name",
    ]


def test_what_is_wrong_elsewhere_is_reported_too() -> None:
    found = said(with_spec(hostNetwork="yes", hostname="A", dnsPolicy="Nobody"))
    assert sorted(found) == ["spec.dnsPolicy", "spec.hostNetwork", "spec.hostname"]
