"""The queries of alerts and dashboard ask for metrics and labels that the components have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import promql_parser as promql
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from tests.chart.manifests import CHART
from tests.docs.pages import ROOT
from tools.dashboard import ROWS
from tools.metrics_page import components

OF_TARGETS = {"namespace", "pod", "container", "job", "instance", "endpoint", "service"}
"""Labels that Prometheus adds to what it scrapes from a pod."""
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
ALERTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((CHART / "files/alerts.yaml").read_text())
NUMBERS = {"$certificateSeconds": "864000", "$controllers": "1", "$__rate_interval": "5m"}


class Query(NamedTuple):
    """A query, the registries that have its metrics, and labels that its text fills in."""

    text: str
    registries: list[CollectorRegistry]
    shown: set[str]


def queries() -> Iterator[Any]:
    registries = components()
    for component, alerts in ALERTS.items():
        for alert in alerts:
            shown = set(re.findall(r"\$labels\.(\w+)", " ".join(alert["annotations"].values())))
            yield pytest.param(
                Query(alert["expr"], [registries[component]], shown), id=alert["alert"]
            )
    for row, panels in ROWS.items():
        for panel in panels:
            for legend, text in panel.queries.items():
                shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
                name = f"{row}-{panel.title}-{legend}"
                yield pytest.param(Query(text, list(registries.values()), shown), id=name)


def parsed(text: str) -> promql.Expr:
    for name, number in NUMBERS.items():
        text = text.replace(name, number)
    return promql.parse(text)


def labels_of(registry: CollectorRegistry) -> dict[str, set[str]]:
    """The labels of each series of a component, by its name."""
    found = {}
    for collector in registry._collector_to_names:
        for family in collector.collect():
            # Families of a collector of our own know their labels, those of the library do not.
            declares: Any = collector if isinstance(collector, MetricWrapperBase) else family
            for suffix in SUFFIXES[family.type]:
                labels = {*declares._labelnames} | ({"le"} if suffix == "_bucket" else set())
                found[family.name + suffix] = labels
    return found


def labels_after(expr: Any, known: dict[str, set[str]]) -> set[str]:
    """The labels that the result of a query has."""
    match expr:
        case promql.VectorSelector():
            assert expr.name in known, expr.name
            return known[expr.name] | OF_TARGETS
        case promql.MatrixSelector():
            return labels_after(expr.vector_selector, known)
        case promql.AggregateExpr():
            wanted = set(expr.modifier.labels) if expr.modifier else set()
            assert wanted <= labels_after(expr.expr, known), expr.prettify()
            return wanted
        case promql.BinaryExpr():
            return labels_after(expr.lhs, known)
        case promql.Call():
            given = [labels_after(each, known) for each in expr.args]
            return set().union(*given) - (
                {"le"} if expr.func.name == "histogram_quantile" else set()
            )
        case promql.ParenExpr():
            return labels_after(expr.expr, known)
        case _:
            return set()


def selectors(expr: promql.Expr) -> list[Any]:
    """What a query asks for."""
    found: list[Any] = []

    def visit(each: Any) -> None:
        if isinstance(each, promql.VectorSelector):
            found.append(each)
        elif isinstance(each, promql.MatrixSelector):
            found.append(each.vector_selector)

    promql.walk(expr, visit)
    return found


@pytest.mark.parametrize("query", [*queries()])
def test_a_query_asks_for_what_a_component_has(query: Query) -> None:
    expr = parsed(query.text)
    known: dict[str, set[str]] = {}
    values = set()
    for registry in query.registries:
        known |= labels_of(registry)
        values |= {
            (sample.name, *label)
            for family in registry.collect()
            for sample in family.samples
            for label in sample.labels.items()
        }
    asked = selectors(expr)
    assert asked
    assert {each.name for each in asked} <= known.keys()
    for each in asked:
        for matcher in each.matchers.matchers:
            assert (each.name, matcher.name, matcher.value) in values
    assert query.shown <= labels_after(expr, known)


def test_a_query_for_what_no_component_has_would_be_noticed() -> None:
    registries = list(components().values())
    for text, shown in (
        ("pumice_admission_reviews", set()),  # a counter without its _total
        ("sum by (queue) (volcano_queue_share)", set()),
        ('pumice_scheduler_errors_total{scope="cycles"}', set()),
        ("sum by (phase) (pumice_controller_job_phases_total)", {"pod"}),
    ):
        with pytest.raises((AssertionError, KeyError)):
            test_a_query_asks_for_what_a_component_has(Query(text, registries, shown))


def test_prometheus_renames_no_label_of_a_metric() -> None:
    for registry in components().values():
        for name, labels in labels_of(registry).items():
            assert not labels & OF_TARGETS, name


def test_every_alert_is_explained_and_no_other() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    section = page.partition("\n### Alerts\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(Pumice\w+)` \|", section, re.MULTILINE)
    assert named == [alert["alert"] for alerts in ALERTS.values() for alert in alerts]
    assert set(re.findall(r"Pumice[A-Z]\w+", page)) <= set(named)
