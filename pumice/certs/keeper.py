"""Keeps one process's serving certificate valid.

One check is repeated at every poll interval and at each change of a configuration. Each check reads the wall clock.
There is no timer for the expiry, because a paused machine misses timers.

1. read the Secret; bring its authorities up to date; write it back if that changed anything
2. have its trust bundle injected into the webhook configurations
3. serve a leaf signed by the current CA, once every configuration trusts that CA

Each process signs a short-lived leaf of its own with the CA that all share, and keeps it in memory: a leaf is never
stored, and replicas share only the authorities. If two write at once, one gets a conflict by the Secret's
resourceVersion, reads the Secret again and uses it.

If the Secret is deleted, a running process writes its authorities back, so that neither the leaves in use nor the
bundle change. A process without authorities creates new ones. The valid part of a damaged Secret is used. In each case
every CA of Pumice that the configurations trust stays trusted, because another process may be serving a leaf of it.

While the Secret can be neither read nor written (rights taken away, `immutable: true`), leaves are renewed with the
authorities that were last read. If a process was stopped until its leaf expired, the next handshake renews the leaf
first.

To remove a CA whose key has leaked, stop all replicas, delete the Secret, empty `caBundle`, and start the replicas.
"""

import asyncio
import logging

from cryptography import x509
from cryptography.x509.oid import NameOID

from pumice.api.kinds import SECRET
from pumice.certs.authority import (
    ORGANIZATION,
    Leaf,
    generate_key,
    is_authority,
    not_after,
    same,
)
from pumice.certs.bundle import Bundle, read
from pumice.certs.injection import Injector
from pumice.certs.reload import ServingCertificate
from pumice.certs.rotation import CertSettings, leaf_is_due, new_leaf, up_to_date
from pumice.certs.verification import FLAWS, certificates_in, problem_with
from pumice.cluster.client import Client, Object
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from pumice.cluster.events import Reference
from pumice.cluster.set_aside import PAUSES

logger = logging.getLogger(__name__)

_PLACE = "certificates"
"""Where the Secret may be set aside, in metrics and events."""

WRITE_ATTEMPTS = 5
"""Attempts in one check to write the Secret when other replicas write it, too."""


class CertificateManager:
    """Keeps authorities, trust bundle and serving certificate up to date.

    Attributes:
        serving: The serving certificate; give its `context` to the server.
        injector: Writes the trust bundle to the webhook configurations.
        bundle: The authorities as last read or written; None before the first check.
        started: Set when there is a certificate to serve.
    """

    def __init__(
        self,
        client: Client,
        settings: CertSettings,
        *,
        injector: Injector | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create a manager."""
        self._client = client
        self._settings = settings
        self._clock = clock or SystemClock()
        self.serving = ServingCertificate(self._clock)
        self.serving.on_stale(self._serve_at_once)
        self.injector = injector or Injector.of(client, settings, clock=self._clock)
        self.bundle: Bundle | None = None
        self.started = asyncio.Event()
        self._leaf: Leaf | None = None
        self._fault = ""
        self._trusted_since: dict[x509.Certificate, float] = {}

    @property
    def ready(self) -> bool:
        """True if the API server accepts the served certificate by the CA bundle of every webhook configuration."""
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """Why the API server would not accept the served certificate, or None if it would."""
        entries = self.injector.entries
        if not entries:
            return "no webhook configuration exists yet"
        moment = self._clock.wall()
        for each in entries:
            if problem := problem_with(self.serving.chain, each.trust, each.host, moment):
                return problem
        return None

    async def look(self) -> None:
        """Check once, and do what is due.

        Raises:
            ApiError: When the Secret cannot be read or written; the certificate that is known stays in use.
        """
        try:
            self.bundle = await self._up_to_date(self._clock.wall())
            await self.injector.inject(self.bundle.trust)
        finally:
            moment = (
                self._clock.wall()
            )  # checked again: the process may have been stopped meanwhile
            if self.bundle is not None and self.bundle.current.valid_at(moment):
                self._serve(self.bundle, moment)
                self.started.set()

    async def run(self) -> None:
        """Check the certificates forever: at every poll interval, and when the injector sees a change."""
        secret = Reference(SECRET, self._settings.secret, self._settings.namespace)
        faults, failures = self.injector.faults, 0
        while True:
            self.injector.changed.clear()
            pause = self._settings.poll_seconds
            try:
                await self.look()
            except ApiError as error:
                if str(error) != self._fault:
                    logger.error("certificates: %s; trying again", error)
                self._fault = str(error)
            except Exception as error:
                pause = PAUSES.delay(failures)
                failures += 1
                faults.failed(secret, _PLACE, error, pause)
            else:
                self._fault, failures = "", 0
                faults.passed(secret, _PLACE)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        changing = asyncio.ensure_future(self.injector.changed.wait())
        try:
            await asyncio.wait([sleeping, changing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            changing.cancel()

    def _serve(self, bundle: Bundle, moment: float) -> None:
        """Serve another leaf if it is due and every client would accept it."""
        settled = self._settled(bundle, moment)
        if not leaf_is_due(self._leaf, bundle, self._settings, moment):
            return
        if not settled and self.ready:
            # What is served is still accepted; a leaf of the new CA might not be. There is time.
            logger.info("the current CA is not trusted everywhere yet; keeping the old leaf")
            return
        self._serve_leaf_of(bundle, moment)

    def _serve_leaf_of(self, bundle: Bundle, moment: float) -> None:
        self._leaf = new_leaf(bundle, self._settings, moment, generate_key)
        self.serving.use(self._leaf.certificate_pem, self._leaf.key_pem)
        logger.info("serving a new certificate, valid for %.0f s", self.serving.expires - moment)

    def _serve_at_once(self) -> None:
        """Replace an expired leaf during a client's handshake."""
        moment = self._clock.wall()
        self.injector.changed.set()  # there may be more to do than this
        if self.bundle is None:
            return
        for signer in (self.bundle.current, self.bundle.next):
            if signer is not None and signer.valid_at(moment):
                self._serve_leaf_of(Bundle(signer), moment)
                return

    def _settled(self, bundle: Bundle, moment: float) -> bool:
        """True if all configurations have trusted the signing CA for long enough.

        The time is recorded for all CAs, so that it is known for the next one when it begins to sign.
        """
        self._trusted_since = {
            each: self._trusted_since.get(each, moment)
            for each in bundle.trusted
            if self.injector.trusts(each)
        }
        since = self._trusted_since.get(bundle.current.certificate)
        return since is not None and moment - since >= self._settings.settle_seconds

    async def _up_to_date(self, moment: float) -> Bundle:
        """The Secret's authorities, after they were brought up to date and written back."""
        attempts = 0
        while True:
            try:
                return await self._reconciled(moment)
            except (Conflict, AlreadyExists):
                # Another replica was faster; read again and take what it wrote.
                attempts += 1
                if attempts == WRITE_ATTEMPTS:
                    raise

    async def _reconciled(self, moment: float) -> Bundle:
        name = self._settings.secret
        secret = await self._secret()
        reading = read((secret or {}).get("data"))
        found, trusted = reading.bundle, reading.trusted
        if reading.problems or self._replaced(found, moment):
            trusted = (*trusted, *await self._in_use(moment))
        if self.bundle is None:
            self.bundle = found  # a certificate to serve if writing fails
        restored = found is None and self.bundle is not None
        if restored:
            found = self.bundle
        if found is not None:
            found = found.trusting(*trusted)
        bundle, steps = up_to_date(found, self._settings, moment, generate_key, trusted)
        if reading.problems or reading.bundle is None or bundle.trust != reading.bundle.trust:
            await self._write(secret, bundle)
        for problem in reading.problems:
            logger.warning("Secret %s was damaged: %s", name, problem)
        if restored:
            logger.warning("Secret %s had lost its authorities; they are put back", name)
        for step in steps:
            logger.info("Secret %s: %s", name, step.value)
        return bundle

    def _replaced(self, found: Bundle | None, moment: float) -> bool:
        """True if the Secret was replaced by another one, which may lack CAs that are trusted."""
        if found is None or self.bundle is None:
            return True
        return not all(
            any(same(each, known) for known in found.trusted)
            for each in self.bundle.trusted
            if not_after(each) > moment
        )

    async def _in_use(self, moment: float) -> tuple[x509.Certificate, ...]:
        """CAs of Pumice that the Secret lacks, and whose leaves another replica may be serving.

        They are those that this process remembers and those that the configurations trust.
        """
        await self.injector.inject(None)
        found = list(self.bundle.trusted) if self.bundle else []
        for bundle in self.injector.bundles:
            found += certificates_in(bundle)
        return tuple(each for each in found if _is_ours(each) and not_after(each) > moment)

    async def _secret(self) -> Object | None:
        try:
            return await self._client.get(SECRET, self._settings.secret, self._settings.namespace)
        except NotFound:
            return None

    async def _write(self, secret: Object | None, bundle: Bundle) -> None:
        if secret is None:
            fresh = {
                **SECRET.type_meta,
                "metadata": {
                    "name": self._settings.secret,
                    "namespace": self._settings.namespace,
                },
                "type": "Opaque",
                "data": bundle.to_data(),
            }
            await self._client.create(SECRET, fresh)
        else:
            data = {**(secret.get("data") or {}), **bundle.to_data()}
            await self._client.update(SECRET, {**secret, "data": data})


def _is_ours(certificate: x509.Certificate) -> bool:
    try:
        names = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    except FLAWS:
        return False
    return is_authority(certificate) and any(name.value == ORGANIZATION for name in names)
