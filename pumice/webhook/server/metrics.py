"""The server's metrics."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from pumice.webhook.answers import Answer

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})


class ServerMetrics:
    """Metrics of one server; each has a help text.

    Results of lookups are `found`, `missing` and `failed`; files of resource groups were `loaded` or `failed`. One
    review may count under several rules.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name = "pumice_admission_"

        def counter(what: str, text: str, *labels: str) -> Counter:
            return Counter(f"{name}{what}", text, labels, registry=self.registry)

        def gauge(what: str, text: str, *labels: str) -> Gauge:
            return Gauge(what, text, labels, registry=self.registry)

        by_rule = ("path", "rule")
        self.reviews = counter(
            "reviews", "Reviews answered.", "path", "operation", "outcome", "code"
        )
        self.refusals = counter("refusals", "Refusals by rule.", *by_rule)
        self.warnings = counter("warnings", "Warnings by rule.", *by_rule)
        self.tolerated = counter(
            "tolerated",
            "Warnings by rule that would be refusals, had settings not made the rule warn.",
            *by_rule,
        )
        text = "Time to answer a review."
        self.seconds = Histogram(
            f"{name}review_seconds", text, ["path"], buckets=_SECONDS, registry=self.registry
        )
        self.crashes = counter("rule_crashes", "Rules that raised.", "rule")
        text = "Live looks for a queue that the cache lacks."
        self.lookups = counter("queue_lookups", text, "result")
        text = "Live looks for the owner of a pod that plugins wire."
        self.owner_lookups = counter("owner_lookups", text, "result")
        text = "Seconds since the API server was last heard of."
        self.cache_age = gauge("pumice_cache_age_seconds", text, "kind")
        text = "When the served certificate ends."
        self.certificate_expiry = gauge("pumice_certificate_expiry_timestamp_seconds", text)
        text = "Whether the files of the certificate are missing or wrong, so that the last good one is served."
        self.certificate_unusable = gauge("pumice_certificate_files_unusable", text)
        self.connections = gauge(f"{name}connections", "Connections on the port of reviews.")
        text = (
            "Connections that were closed without an answer: `crowded`, to stay within the limit; `quiet`, "
            "without a first byte in time; `slow`, without a whole request head in time."
        )
        self.dropped = counter("connections_dropped", text, "reason")
        # A counter that begins with its first event hides that event from Prometheus' increase().
        for reason in ("crowded", "quiet", "slow"):
            self.dropped.labels(reason)
        text = "Bytes of large reviews that arrive or are judged."
        self.body_bytes = gauge(f"{name}body_bytes", text)
        text = "Large reviews that wait until others are answered."
        self.bodies_waiting = gauge(f"{name}bodies_waiting", text)
        self.groups = gauge(f"{name}resource_groups", "Resource groups in effect.")
        text = "Whether the file of resource groups is missing or wrong, so that the last good one holds."
        self.conf_unusable = gauge(f"{name}conf_unusable", text)
        text = "Versions of the file of resource groups that were met."
        self.conf_reads = counter("conf_reads", text, "result")
        # Finding a labelled child costs more than counting, and there are few of them.
        self._counted = cache(lambda *labels: self.reviews.labels(*labels).inc)
        self._timed = cache(lambda path: self.seconds.labels(path).observe)

    def answered(self, path: str, answer: Answer, seconds: float) -> None:
        """Count a review."""
        operation = answer.question.operation
        known = operation if operation in _OPERATIONS else "other"
        self._counted(path, known, answer.outcome, answer.status)()
        self._timed(path)(seconds)
        for code in answer.codes:
            self.refusals.labels(path, code).inc()
        for code in answer.warned:
            self.warnings.labels(path, code).inc()
        for code in answer.tolerated:
            self.tolerated.labels(path, code).inc()

    def turned_away(self, path: str, status: int) -> None:
        """Count a request that was refused before it was read as a review."""
        self.reviews.labels(path, "other", "errored", str(status)).inc()
