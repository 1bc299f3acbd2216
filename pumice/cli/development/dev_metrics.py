"""Metrics of all components of `pumice dev` at one address, which in a cluster are three."""

import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from pumice.webhook.admission import Admission
from pumice.webhook.server.metrics import ServerMetrics

__all__ = ["CountedAdmission", "together"]


class CountedAdmission:
    """Admission that counts its reviews, as the webhook's server does.

    Attributes:
        metrics: The counts.
    """

    def __init__(self, admission: Admission) -> None:
        """Count the reviews of an admission."""
        self.metrics = ServerMetrics()
        self._admission = admission

    def review(self, path: str, body: bytes) -> bytes:
        """Answer a review: an AdmissionReview as JSON in, one out."""
        began = time.perf_counter()
        answer = self._admission.answer(path, body)
        self.metrics.answered(path, answer, time.perf_counter() - began)
        return answer.body


class _AllMetrics(Collector):
    def __init__(self, registries: Mapping[str, CollectorRegistry]) -> None:
        self._registries = registries

    def collect(self) -> Iterator[Metric]:
        """Every metric of every registry. Some components have metrics of one name, so the label tells them apart."""
        found: dict[str, Metric] = {}
        for component, registry in self._registries.items():
            for metric in registry.collect():
                kept = found.setdefault(
                    metric.name, Metric(metric.name, metric.documentation, metric.type)
                )
                kept.samples += [
                    each._replace(labels={**each.labels, "component": component})
                    for each in metric.samples
                ]
        yield from found.values()


def together(registries: Mapping[str, CollectorRegistry]) -> CollectorRegistry:
    """One registry of several, with the label `component` on each sample.

    Args:
        registries: The registry of each component, by its name.
    """
    registry = CollectorRegistry()
    registry.register(_AllMetrics(registries))
    return registry
