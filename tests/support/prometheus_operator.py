"""The kinds of the Prometheus operator, as far as the chart uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.closed_kinds import TEXT, Schema, closed, install, remove
from tests.support.controlplane.cluster import ControlPlane

GROUP = "monitoring.coreos.com"
NAMED: Schema = {**TEXT, "minLength": 1}
DURATION: Schema = {
    **TEXT,
    "pattern": "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
}
MAP: Schema = {"type": "object", "additionalProperties": TEXT}
ENDPOINTS: Schema = {"type": "array", "items": closed(port=TEXT, interval=DURATION)}
RULE = closed(("expr",), alert=TEXT, expr=TEXT, labels=MAP, annotations=MAP, **{"for": DURATION})
GROUPS: Schema = {
    "type": "array",
    "items": closed(("name",), name=NAMED, rules={"type": "array", "items": RULE}),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
SELECTOR = closed(matchLabels=MAP)
SPECS: dict[str, Schema] = {
    "ServiceMonitor": closed(("endpoints", "selector"), endpoints=ENDPOINTS, selector=SELECTOR),
    "PodMonitor": closed(("selector",), podMetricsEndpoints=ENDPOINTS, selector=SELECTOR),
    "PrometheusRule": closed(groups=GROUPS),
}
"""Source: the operator's reference of `monitoring.coreos.com/v1`."""


@contextmanager
def prometheus_kinds(plane: ControlPlane) -> Iterator[None]:
    """Install the kinds for a while."""
    install(plane, GROUP, SPECS)
    try:
        yield
    finally:
        remove(plane, GROUP, SPECS)
