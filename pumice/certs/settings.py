"""How long certificates last, and whose they are.

With `renew_at` = 2/3, a CA signs until a third of its duration is left, and a leaf is replaced when a
third of its own is left. Two inequalities keep every chain valid at every moment:

    leaf_duration       ≤  ca_duration × (1 − renew_at)     a leaf ends before the CA that signed it
    2 × poll_seconds    <  leaf_duration × (1 − renew_at)   a renewal may fail once and is still in time
"""

from dataclasses import dataclass

__all__ = ["DAY", "CertSettings"]

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class CertSettings:
    """Settings of the self-made certificates.

    Attributes:
        service: Name of the Service that the API server calls.
        namespace: Its namespace, where the Secret lives too.
        secret: Name of the Secret that holds the authorities.
        mutating: Names of the MutatingWebhookConfigurations to inject into.
        validating: Names of the ValidatingWebhookConfigurations to inject into.
        extra_names: DNS names beside the Service's, for webhooks that are called by URL.
        extra_addresses: IP addresses likewise.
        ca_duration: How long a CA signs and then stays trusted, in seconds; a year.
        leaf_duration: How long a served certificate is valid, in seconds; 30 days.
        renew_at: Share of a duration after which a CA or leaf is replaced; 2/3.
        backdate: Seconds by which certificates start earlier than they are made, for machines whose
            clocks disagree; an hour.
        poll_seconds: Seconds between two looks at the Secret, the clock and the configurations.
        settle_seconds: Seconds that a CA must have been trusted everywhere before a leaf of it
            replaces one that is still accepted: API servers learn of a new bundle by watching.
    """

    service: str
    namespace: str
    secret: str = "pumice-webhook-certs"
    mutating: tuple[str, ...] = ()
    validating: tuple[str, ...] = ()
    extra_names: tuple[str, ...] = ()
    extra_addresses: tuple[str, ...] = ()
    ca_duration: float = 365 * DAY
    leaf_duration: float = 30 * DAY
    renew_at: float = 2 / 3
    backdate: float = 3600.0
    poll_seconds: float = 30.0
    settle_seconds: float = 10.0

    def __post_init__(self) -> None:
        """Check the inequalities.

        Raises:
            ValueError: Naming the setting that is off and what it must be.
        """
        if not 0 < self.renew_at < 1:
            raise ValueError(f"renew_at must lie between 0 and 1, found {self.renew_at}")
        overlap = self.ca_duration * (1 - self.renew_at)
        if self.leaf_duration > overlap:
            raise ValueError(
                f"leaf_duration must be at most ca_duration × (1 − renew_at) = {overlap:g} s, so "
                f"that no leaf outlives its CA; found {self.leaf_duration:g} s"
            )
        margin = self.leaf_duration * (1 - self.renew_at)
        if not 0 < 2 * self.poll_seconds < margin:
            raise ValueError(
                f"poll_seconds must be positive and less than half of leaf_duration × "
                f"(1 − renew_at) = {margin:g} s, so that a renewal may fail once; "
                f"found {self.poll_seconds:g} s"
            )

    @property
    def host(self) -> str:
        """The name by which the API server calls the Service."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def names(self) -> tuple[str, ...]:
        """All DNS names of a leaf: the Service's four, then the extra ones."""
        service, namespace = self.service, self.namespace
        own = (service, f"{service}.{namespace}", self.host, f"{self.host}.cluster.local")
        return tuple(dict.fromkeys((*own, *self.extra_names)))
