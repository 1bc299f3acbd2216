"""Write the chart's `files/dashboard.json`: the Grafana dashboard of all components.

Run as `python -m tools.dashboard [--check] FILE`. `ROWS` says what each panel shows; place, size and what Grafana wants of a
panel beside that is the same for all.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from tools.generated import run

Raw = dict[str, Any]

WIDTH, HEIGHT, PANELS_BESIDE = 8, 7, 3
RATE = "[$__rate_interval]"


class Panel(NamedTuple):
    """One graph.

    Attributes:
        title: What stands above it.
        unit: Grafana's name of the unit.
        queries: PromQL by legend; `{{label}}` in a legend is the value of a label.
    """

    title: str
    unit: str
    queries: dict[str, str]


def _rate(metric: str, *labels: str) -> str:
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} (rate({metric}{RATE}))"


def _quantile(share: float, metric: str, *labels: str) -> str:
    return f"histogram_quantile({share}, {_rate(f'{metric}_bucket', 'le', *labels)})"


def _by_queue(*figures: str, unit: str, scale: str = "") -> dict[str, str]:
    """What holds for each queue; only the scheduler that leads has series of queues."""
    return {
        f"{{{{queue_name}}}} {figure}": f"max by (queue_name) (volcano_queue_{figure}_{unit}){scale}"
        for figure in figures
    }


ROWS: dict[str, tuple[Panel, ...]] = {
    "Admission": (
        Panel(
            "Reviews",
            "reqps",
            {"{{outcome}}": _rate("pumice_admission_reviews_total", "outcome")},
        ),
        Panel(
            "Time to answer a review, 99th percentile",
            "s",
            {"{{path}}": _quantile(0.99, "pumice_admission_review_seconds", "path")},
        ),
        Panel(
            "Refusals by rule",
            "cps",
            {"{{rule}}": _rate("pumice_admission_refusals_total", "rule")},
        ),
        Panel(
            "Warnings by rule",
            "cps",
            {"{{rule}}": _rate("pumice_admission_warnings_total", "rule")},
        ),
        Panel(
            "Certificate: time until it expires",
            "s",
            {"{{pod}}": "pumice_certificate_expiry_timestamp_seconds - time()"},
        ),
        Panel(
            "Age of the caches",
            "s",
            {"{{pod}} {{kind}}": "pumice_cache_age_seconds"},
        ),
    ),
    "Controller": (
        Panel("Jobs", "short", {"Jobs": "max(pumice_controller_jobs)"}),
        Panel(
            "Phases that Jobs entered",
            "cps",
            {"{{phase}}": _rate("pumice_controller_job_phases_total", "phase")},
        ),
        Panel(
            "From the creation of a Job to that of its first pods",
            "ms",
            {
                f"{share:.0%}": _quantile(
                    share, "volcano_controller_job_to_pod_creation_latency_milliseconds"
                )
                for share in (0.5, 0.99)
            },
        ),
        Panel(
            "Passes over Jobs",
            "ops",
            {"{{result}}": _rate("pumice_controller_passes_total", "result")},
        ),
        Panel(
            "Writes to the API server",
            "wps",
            {
                "{{verb}} {{kind}} {{result}}": _rate(
                    "pumice_controller_writes_total", "verb", "kind", "result"
                )
            },
        ),
        Panel(
            "Processes that lead",
            "short",
            {
                "controller": "sum(pumice_controller_leading)",
                "scheduler": "sum(pumice_scheduler_leading)",
            },
        ),
    ),
    "Scheduler": (
        Panel("PodGroups that wait", "short", {"waiting": "max(volcano_unschedule_job_count)"}),
        Panel(
            "From the creation of a PodGroup until its minimum is bound",
            "ms",
            {
                f"{share:.0%}": _quantile(share, "volcano_e2e_job_scheduling_latency_milliseconds")
                for share in (0.5, 0.99)
            },
        ),
        Panel(
            "Duration of a scheduling cycle",
            "s",
            {
                f"{share:.0%}": _quantile(share, "pumice_scheduler_cycle_seconds")
                for share in (0.5, 0.99)
            },
        ),
        Panel(
            "Bindings",
            "ops",
            {"{{result}}": _rate("pumice_scheduler_binds_total", "result")},
        ),
        Panel(
            "Evictions",
            "ops",
            {"{{result}}": _rate("pumice_scheduler_evictions_total", "result")},
        ),
        Panel(
            "Unexpected exceptions",
            "cps",
            {
                "scheduler: {{scope}}": _rate("pumice_scheduler_errors_total", "scope"),
                "webhook: {{rule}}": _rate("pumice_admission_rule_crashes_total", "rule"),
                "{{kind}}: {{place}}": _rate("pumice_object_errors_total", "kind", "place"),
            },
        ),
    ),
    "Queues": (
        Panel(
            "CPU: allocated and deserved, in cores",
            "short",
            _by_queue("allocated", "deserved", unit="milli_cpu", scale=" / 1000"),
        ),
        Panel(
            "Memory: allocated and deserved",
            "bytes",
            _by_queue("allocated", "deserved", unit="memory_bytes"),
        ),
        Panel(
            "Other resources: allocated",
            "short",
            {
                "{{queue_name}} {{resource}}": "max by (queue_name, resource) "
                "(volcano_queue_allocated_scalar_resources) / 1000"
            },
        ),
        Panel(
            "Share of what it deserves",
            "percentunit",
            {"{{queue_name}}": "max by (queue_name) (volcano_queue_share)"},
        ),
    ),
}


def dashboard() -> Raw:
    """The whole dashboard, as Grafana imports it."""
    source = {
        "name": "datasource",
        "type": "datasource",
        "query": "prometheus",
        "label": "Data source",
    }
    return {
        "uid": "pumice",
        "title": "Pumice",
        "tags": ["kubernetes", "batch", "pumice"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": list(_panels()),
    }


def _panels() -> Iterator[Raw]:
    top = number = 0
    for title, panels in ROWS.items():
        number += 1
        place = {"h": 1, "w": WIDTH * PANELS_BESIDE, "x": 0, "y": top}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        top += 1
        for index, panel in enumerate(panels):
            number += 1
            below, beside = divmod(index, PANELS_BESIDE)
            place = {"h": HEIGHT, "w": WIDTH, "x": WIDTH * beside, "y": top + HEIGHT * below}
            yield _graph(panel, number, place)
        top += HEIGHT * -(-len(panels) // PANELS_BESIDE)


def _graph(panel: Panel, number: int, place: dict[str, int]) -> Raw:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "gridPos": place,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": source,
                "expr": query,
                "legendFormat": legend,
            }
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check; exit code 1 when the file is missing or stale."""
    return run("dashboard", __doc__, _text, arguments)


if __name__ == "__main__":
    sys.exit(main())
