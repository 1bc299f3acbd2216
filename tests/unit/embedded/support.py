"""What the tests of the embedded server share."""

from typing import Any

from pumice.api.kinds import Kind
from pumice.embedded import EmbeddedCluster
from pumice.embedded.statuses import ApiStatusError
from tests.tables import table

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
MOMENT = 1_700_000_000.0
"""2023-11-14T22:13:20Z, when nothing says otherwise."""


def cases(name: str) -> Any:
    """The content of a table under `tests/cases/embedded/`."""
    return table(f"embedded/{name}")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, moment: float = MOMENT) -> None:
        self.moment = moment

    def __call__(self) -> float:
        return self.moment


def offline(**options: Any) -> EmbeddedCluster:
    """A cluster that is not served; its objects can be used all the same."""
    return EmbeddedCluster(clock=Clock(), **options)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A ConfigMap in `default`."""
    obj: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
    }
    if data is not None:
        obj["data"] = data
    return obj


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A pod with one container in `default`."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def widgets(schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    """A CRD of kind Widget in group example.com; keywords are fields of its only version."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema or {"type": "object"}},
                    **version,
                }
            ],
        },
    }


def causes(error: ApiStatusError) -> list[str]:
    """The fields that a refusal names."""
    assert error.details is not None
    return [cause["field"] for cause in error.details["causes"]]


def widget(name: str = "w", **fields: Any) -> dict[str, Any]:
    """An object of the kind that `widgets` defines."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **fields}
