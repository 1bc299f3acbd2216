"""Where the serving certificate comes from."""

import ssl
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.certs.reload import FileReloader, ServingCertificate
from pumice.cluster.clock import Clock, SystemClock
from pumice.cluster.lifecycle import SupervisedTask

if TYPE_CHECKING:  # late: serving files, or no TLS, does not need what makes certificates
    from pumice.certs.injection import Injector
    from pumice.certs.keeper import CertificateManager

__all__ = ["Certificates", "FileCertificates", "KeptCertificates"]


class Certificates(ABC):
    """A certificate that is served and kept fresh."""

    def __init__(self, serving: ServingCertificate) -> None:
        """Serve what is put there."""
        self._serving = serving

    @property
    def context(self) -> ssl.SSLContext:
        """What to serve with; stays the same object while certificates change."""
        return self._serving.context

    @property
    def expires(self) -> float:
        """When what is served ends, in UNIX seconds; 0 when nothing is."""
        return self._serving.expires

    @property
    @abstractmethod
    def problem(self) -> str | None:
        """Why the API server would not accept what is served, or None when it would."""

    @abstractmethod
    def tasks(self) -> list[SupervisedTask]:
        """What keeps it fresh."""


class FileCertificates(Certificates):
    """A certificate in files that another program renews."""

    def __init__(self, certificate: Path, key: Path, *, clock: Clock | None = None) -> None:
        """Read the files.

        Raises:
            ValueError: When there is no usable pair.
        """
        self._clock = clock or SystemClock()
        super().__init__(ServingCertificate(self._clock))
        self._reloader = FileReloader(self._serving, certificate, key, clock=self._clock)
        self._injector: Injector | None = None

    def compare_with(self, injector: "Injector") -> None:
        """From now on have a problem where the API server, as it is configured, would refuse what is served.

        Nothing is injected into the webhook configurations that the injector knows.
        """
        self._injector = injector

    @property
    def problem(self) -> str | None:
        """Why clients would not accept what is served, or None when they would."""
        if self._clock.wall() >= self.expires:
            return "the served certificate has expired"
        if self._injector is None:
            return None
        if not self._injector.synced:
            return "the webhook configurations are not read yet"
        from pumice.certs.verification import refusal

        for each in self._injector.entries:
            if problem := refusal(self._serving.context, each.trust, each.host):
                return f"the API server would refuse what is served to {each.host}: {problem}"
        return None

    @property
    def note(self) -> str | None:
        """Why the files are not what is served, or None when they are."""
        found = self._reloader.problem
        return f"the certificate read before stays: {found}" if found else None

    def tasks(self) -> list[SupervisedTask]:
        """What reads the files and the webhook configurations again."""
        following = [SupervisedTask("certificate files", self._reloader.run)]
        if self._injector is not None:
            following.append(SupervisedTask("watch of webhook configurations", self._injector.run))
        return following


class KeptCertificates(Certificates):
    """Certificates that Pumice makes itself and has the API server trust."""

    def __init__(self, keeper: "CertificateManager") -> None:
        """Serve what a keeper keeps."""
        super().__init__(keeper.serving)
        self._keeper = keeper

    @property
    def problem(self) -> str | None:
        """Why the API server would not accept what is served, or None when it would."""
        return self._keeper.problem

    def tasks(self) -> list[SupervisedTask]:
        """What makes, renews and injects."""
        return [
            SupervisedTask("watch of webhook configurations", self._keeper.injector.run),
            SupervisedTask("certificates", self._keeper.run),
        ]
