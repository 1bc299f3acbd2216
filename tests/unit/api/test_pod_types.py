"""The table of the types of pod templates, and how it is made of what an API server serves."""

import json

from pumice.api.pods import ROOT, pod_types
from tools.pod_types import table

LEAVES = {"string", "boolean", "int32", "int64", "quantity", "int-or-string", "time", "any"}


def test_every_type_that_the_table_names_is_in_it() -> None:
    types = pod_types()
    named = {kind for fields in types.values() for kind in fields.values()}
    bare = {kind.removeprefix("[]").removeprefix("{}") for kind in named}
    assert bare - LEAVES == set(types) - {ROOT}


def test_fields_in_common_use_have_the_known_types() -> None:
    types = pod_types()
    assert types[ROOT] == {"metadata": "ObjectMeta", "spec": "PodSpec"}
    assert types["PodSpec"]["containers"] == "[]Container"
    assert types["PodSpec"]["nodeSelector"] == "{}string"
    assert types["PodSpec"]["terminationGracePeriodSeconds"] == "int64"
    assert types["ContainerPort"]["containerPort"] == "int32"
    assert types["ResourceRequirements"]["limits"] == "{}quantity"
    assert types["TCPSocketAction"]["port"] == "int-or-string"
    assert types["ObjectMeta"]["creationTimestamp"] == "time"


def test_the_table_is_made_of_the_definitions_that_a_template_refers_to() -> None:
    def reference(name: str) -> dict[str, str]:
        return {"$ref": f"#/definitions/{name}"}

    quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"
    definitions = {
        "io.k8s.api.core.v1.PodTemplateSpec": {
            "properties": {"spec": reference("io.k8s.api.core.v1.PodSpec")}
        },
        "io.k8s.api.core.v1.PodSpec": {
            "properties": {
                "priority": {"type": "integer", "format": "int32"},
                "hostNetwork": {"type": "boolean"},
                "args": {"type": "array", "items": {"type": "string"}},
                "overhead": {"type": "object", "additionalProperties": reference(quantity)},
                "volumes": {"type": "array", "items": reference("io.k8s.api.core.v1.Volume")},
            }
        },
        "io.k8s.api.core.v1.Volume": {"properties": {"name": {"type": "string"}}},
        "io.k8s.api.core.v1.Node": {"properties": {"name": {"type": "string"}}},
        quantity: {"type": "string"},
    }
    text = table({"definitions": definitions})
    assert json.loads(text) == {
        "PodSpec": {
            "args": "[]string",
            "hostNetwork": "boolean",
            "overhead": "{}quantity",
            "priority": "int32",
            "volumes": "[]Volume",
        },
        "PodTemplateSpec": {"spec": "PodSpec"},
        "Volume": {"name": "string"},
    }
    assert text.count("\n") == 5
