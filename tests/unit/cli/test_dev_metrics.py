"""Metrics of several components at one address."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from pumice.cli.development.dev_cluster import together


def test_metrics_of_one_name_are_told_apart_by_their_component() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Counter("errors", "Errors.", ["kind"], registry=first).labels("Job").inc()
    Counter("errors", "Errors.", ["kind"], registry=second).labels("Job").inc(2)
    Gauge("nodes", "Nodes.", registry=second).set(3)

    text = generate_latest(together({"controller": first, "scheduler": second})).decode()

    assert text.count("# TYPE errors_total counter") == 1
    assert {each for each in text.splitlines() if each[0] != "#" and "_created" not in each} == {
        'errors_total{component="controller",kind="Job"} 1.0',
        'errors_total{component="scheduler",kind="Job"} 2.0',
        'nodes{component="scheduler"} 3.0',
    }
