"""Sources of the serving certificate."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.certs.reload import FileReloader, ServingCertificate
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.lifecycle import SupervisedTask
from pumice.cluster.set_aside import ObjectFaults

if TYPE_CHECKING:  # late: serving files, or no TLS, does not need what makes certificates
    from pumice.certs.injection import Injector
    from pumice.certs.keeper import CertificateManager


class Certificates(ABC):
    """A serving certificate that is kept up to date.

    Attributes:
        serving: The certificate, with the TLS context of the server.
    """

    def __init__(self, serving: ServingCertificate) -> None:
        self.serving = serving

    @property
    @abstractmethod
    def problem(self) -> str | None:
        """Why the API server would not accept the certificate, or None if it would."""

    @abstractmethod
    def report_to(self, faults: ObjectFaults) -> None:
        """Have objects reported at which something fails unexpectedly; call it before the tasks run."""

    @abstractmethod
    def tasks(self) -> list[SupervisedTask]:
        """Tasks that keep it up to date."""


class FileCertificates(Certificates):
    """A certificate in files that another program renews."""

    def __init__(self, certificate: Path, key: Path, *, clock: Clock | None = None) -> None:
        """Read the files.

        Raises:
            ValueError: When there is no usable pair.
        """
        self._clock = clock or SystemClock()
        super().__init__(ServingCertificate(self._clock))
        self._reloader = FileReloader(self.serving, certificate, key, clock=self._clock)
        self._injector: Injector | None = None

    def compare_with(self, injector: "Injector") -> None:
        """Compare the certificate with the webhook configurations; `problem` then reports if the API server would refuse it.

        The configurations are only read, not patched.
        """
        self._injector = injector

    def report_to(self, faults: ObjectFaults) -> None:
        """Have webhook configurations reported that cannot be read."""
        if self._injector is not None:
            self._injector.faults = faults

    @property
    def problem(self) -> str | None:
        """Why clients would not accept the certificate, or None if they would."""
        if self._clock.wall() >= self.serving.expires:
            return "the served certificate has expired"
        if self._injector is None:
            return None
        if not self._injector.synced:
            return "the webhook configurations are not read yet"
        from pumice.certs.verification import refusal

        for each in self._injector.entries:
            if problem := refusal(self.serving.context, each.trust, each.host):
                return f"the API server would refuse what is served to {each.host}: {problem}"
        return None

    @property
    def note(self) -> str | None:
        """Why the served certificate is not the one in the files, or None if it is."""
        found = self._reloader.problem
        return f"the certificate read before stays: {found}" if found else None

    def tasks(self) -> list[SupervisedTask]:
        """Tasks that read the files and the webhook configurations again."""
        following = [SupervisedTask("certificate files", self._reloader.run)]
        if self._injector is not None:
            following.append(SupervisedTask("watch of webhook configurations", self._injector.run))
        return following


class KeptCertificates(Certificates):
    """Certificates that Pumice creates itself and makes the API server trust."""

    def __init__(self, keeper: "CertificateManager") -> None:
        super().__init__(keeper.serving)
        self._keeper = keeper

    def report_to(self, faults: ObjectFaults) -> None:
        """Have the Secret and webhook configurations reported that cannot be kept."""
        self._keeper.injector.faults = faults

    @property
    def problem(self) -> str | None:
        """Why the API server would not accept the certificate, or None if it would."""
        return self._keeper.problem

    def tasks(self) -> list[SupervisedTask]:
        """Tasks that create and renew certificates and inject the trust bundle."""
        return [
            SupervisedTask("watch of webhook configurations", self._keeper.injector.run),
            SupervisedTask("certificates", self._keeper.run),
        ]
