"""Which changes of the authorities are due at a given time. Pure.

A CA's life, with the default durations (D = 365 days, a third of it left at renewal):

    made as next ── trusted, does not sign ──▶ signs ── 2/3 D ──▶ previous, trusted ── 1/3 D ──▶ gone

A CA that is made as the next one expires 2/3 D after the current one, so that the two never run out together, and has
exactly D left when it begins to sign. It has been trusted for 2/3 D by then: so all clients have trusted a CA for
months before it signs.

Steps are found one at a time and applied until none is left, so a bundle that missed years (a cluster
that was switched off) is brought up to date by the same rules as one that is a minute late.
"""

import enum

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from pumice.certs.authority import END_OF_TIME, Authority, KeyFactory, Leaf, not_after
from pumice.certs.bundle import Bundle
from pumice.certs.settings import CertSettings
from pumice.certs.verification import FLAWS

__all__ = ["Step", "due", "first_bundle", "leaf_is_due", "new_leaf", "next_step", "up_to_date"]


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
