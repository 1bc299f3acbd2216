"""Probes and lifecycle hooks of containers that keep running."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.handlers import hook, probe_handler
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import is_int

__all__ = ["RULES", "lifecycle", "liveness_probe", "readiness_probe", "startup_probe"]

TPL_PROBE = Rule(
    "TPL-PROBE",
    "numbers of probes are 0 or more, and one success is enough where a failure restarts the container",
    "Kubernetes refuses the pod otherwise.",
    "livenessProbe: {tcpSocket: {port: 80}, successThreshold: 2}",
)

RULES = (TPL_PROBE,)

_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_GRACE = "terminationGracePeriodSeconds"


def liveness_probe(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `livenessProbe`."""
    _restarting(site, container, "livenessProbe")


def startup_probe(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `startupProbe`."""
    _restarting(site, container, "startupProbe")


def readiness_probe(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `readinessProbe`, which ends nothing and so has no grace period."""
    probe = container["readinessProbe"]
    if isinstance(probe, dict):
        _probe(site, probe, "readinessProbe")
        if probe.get(_GRACE) is not None:
            message = "must not be set: a container that is not ready goes on running"
            site.report(TPL_PROBE, message, f"readinessProbe.{_GRACE}")


def lifecycle(site: Site, container: Raw, pod: Surroundings) -> None:
    """Check `lifecycle`."""
    found = container["lifecycle"]
    if isinstance(found, dict):
        for when in ("postStart", "preStop"):
            if isinstance(found.get(when), dict):
                hook(site, found[when], pod.grace, f"lifecycle.{when}")


def _restarting(site: Site, container: Raw, field: str) -> None:
    """Check a probe whose failure restarts the container."""
    probe = container[field]
    if not isinstance(probe, dict):
        return
    _probe(site, probe, field)
    threshold = probe.get("successThreshold")
    if is_int(threshold) and threshold > 1:
        message = f"must be 1, found {threshold}"
        site.report(TPL_PROBE, message, f"{field}.successThreshold")
    grace = probe.get(_GRACE)
    if is_int(grace) and grace <= 0:
        site.report(TPL_PROBE, f"must be 1 or more, found {grace}", f"{field}.{_GRACE}")


def _probe(site: Site, probe: Raw, field: str) -> None:
    probe_handler(site, probe, field)
    for name in _NUMBERS:
        number = probe.get(name)
        if is_int(number) and number < 0:
            site.report(TPL_PROBE, f"must be 0 or more, found {number}", f"{field}.{name}")
