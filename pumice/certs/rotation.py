"""Which changes of the authorities are due at a given time. Pure.

A CA's life, with the default durations (D = 365 days, a third of it left at renewal):

    made as next ── trusted, does not sign ──▶ signs ── 2/3 D ──▶ previous, trusted ── 1/3 D ──▶ gone

A CA that is made as the next one expires 2/3 D after the current one, so that the two never run out together, and has
exactly D left when it begins to sign. It has been trusted for 2/3 D by then: so all clients have trusted a CA for
months before it signs.

Steps are found one at a time and applied until none is left, so a bundle that missed years (a cluster
that was switched off) is brought up to date by the same rules as one that is a minute late.

The settings say how long certificates last, and whose they are. With `renew_at` = 2/3, a CA signs until a third of its
duration is left, and a leaf is replaced when a third of its own is left. Two inequalities keep every chain valid at every
moment:

    leaf_duration       ≤  ca_duration × (1 − renew_at)     a leaf ends before the CA that signed it
    2 × poll_seconds    <  leaf_duration × (1 − renew_at)   a renewal may fail once and is still in time
"""

import enum
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from pumice.certs.authority import END_OF_TIME, Authority, KeyFactory, Leaf, not_after
from pumice.certs.bundle import Bundle
from pumice.certs.verification import FLAWS

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


class Step(enum.Enum):
    """One change of a bundle."""

    CREATE = "no CA can sign: make one"
    PROMOTE = "the current CA has a third of its time left: let the next one sign"
    PREPARE = "no CA is ready to follow: make one and have it trusted"
    FORGET = "a CA of the past has expired: stop trusting it"


def due(end: float, duration: float, settings: CertSettings, moment: float) -> bool:
    """True if something that ends at `end` and lasts `duration` must be replaced."""
    return moment >= end - duration * (1 - settings.renew_at)


def _usable(authority: Authority | None, moment: float) -> bool:
    return authority is not None and authority.valid_at(moment)


def next_step(bundle: Bundle | None, settings: CertSettings, moment: float) -> Step | None:
    """The first change that a bundle needs, or None if it needs none."""
    if bundle is None:
        return Step.CREATE
    current, following = bundle.current, bundle.next
    if not _usable(current, moment) and not _usable(following, moment):
        return Step.CREATE
    if following is None:
        return Step.PREPARE
    if due(current.end, settings.ca_duration, settings, moment) or not _usable(current, moment):
        # Promoting a CA that is due as well has no advantage; it is replaced.
        return Step.PROMOTE if _usable(following, moment) else Step.PREPARE
    if following.end <= current.end and following.end < END_OF_TIME:
        return Step.PREPARE
    if any(not_after(each) <= moment for each in bundle.previous):
        return Step.FORGET
    return None


def first_bundle(
    settings: CertSettings,
    moment: float,
    new_key: KeyFactory,
    trusted: tuple[x509.Certificate, ...] = (),
) -> Bundle:
    """Make a bundle from nothing.

    Args:
        settings: Durations.
        moment: UNIX seconds.
        new_key: Makes keys.
        trusted: CAs that other processes may still serve leaves of.
    """
    start = moment - settings.backdate
    current = Authority.create(new_key(), start, moment + settings.ca_duration)
    still_good = tuple(each for each in trusted if not_after(each) > moment)
    return _with_next(Bundle(current), settings, moment, new_key).trusting(*still_good)


def up_to_date(
    bundle: Bundle | None,
    settings: CertSettings,
    moment: float,
    new_key: KeyFactory,
    trusted: tuple[x509.Certificate, ...] = (),
) -> tuple[Bundle, tuple[Step, ...]]:
    """Do everything that is to be done.

    Args:
        bundle: What the Secret holds.
        settings: Durations.
        moment: UNIX seconds.
        new_key: Makes keys.
        trusted: CAs to go on trusting if a new bundle has to be made.

    Returns:
        The bundle as it should be, and the steps that led there; none when nothing changed.
    """
    steps: list[Step] = []
    while (step := next_step(bundle, settings, moment)) is not None:
        steps.append(step)
        if bundle is None or step is Step.CREATE:
            past = (*trusted, *(bundle.trusted if bundle else ()))
            bundle = first_bundle(settings, moment, new_key, past)
        elif step is Step.PROMOTE:
            bundle = _promoted(bundle, settings, moment, new_key)
        elif step is Step.PREPARE:
            bundle = _with_next(bundle, settings, moment, new_key)
        else:
            past = tuple(each for each in bundle.previous if not_after(each) > moment)
            bundle = Bundle(bundle.current, bundle.next, past)
    assert bundle is not None
    return bundle, tuple(steps)


def _with_next(
    bundle: Bundle, settings: CertSettings, moment: float, new_key: KeyFactory
) -> Bundle:
    # Counted from the current CA's end or from now, whichever is later: see the diagram above.
    signing = settings.ca_duration * settings.renew_at
    end = max(bundle.current.end, moment + settings.ca_duration) + signing
    following = Authority.create(new_key(), moment - settings.backdate, end)
    return Bundle(bundle.current, following, bundle.previous)


def _promoted(bundle: Bundle, settings: CertSettings, moment: float, new_key: KeyFactory) -> Bundle:
    assert bundle.next is not None
    promoted = Bundle(bundle.next, None, ()).trusting(bundle.current.certificate, *bundle.previous)
    return _with_next(promoted, settings, moment, new_key)


def leaf_is_due(leaf: Leaf | None, bundle: Bundle, settings: CertSettings, moment: float) -> bool:
    """Whether a process should serve another certificate than it does.

    Reasons: it has none yet, a third of its time is left, or its CA no longer signs.
    """
    if leaf is None or due(not_after(leaf.certificate), settings.leaf_duration, settings, moment):
        return True
    try:
        leaf.certificate.verify_directly_issued_by(bundle.current.certificate)
    except (InvalidSignature, *FLAWS):
        return True
    return False


def new_leaf(bundle: Bundle, settings: CertSettings, moment: float, new_key: KeyFactory) -> Leaf:
    """Sign a certificate for one process with the current CA."""
    return bundle.current.issue(
        new_key(),
        settings.names,
        settings.extra_addresses,
        moment - settings.backdate,
        moment + settings.leaf_duration,
    )
