"""Access to the embedded API server: by token, and by the address at which it listens.

Loopback keeps other machines out, but neither other users of this one nor the pages of a browser: a page may give its own
host name this machine's address (DNS rebinding) and then ask as if it came from here. Its requests name that
host, and have no token.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from pumice.embedded.statuses import ApiStatusError

__all__ = ["Access"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SCHEME = "bearer "


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials that a request must have.

    Attributes:
        token: The bearer token.
    """

    token: str

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without access.

        Raises:
            ApiStatusError: It names another host (403), or has no token or another one (401).
        """
        named = headers.get("Host", "")
        if _without_port(named) not in _LOOPBACK:
            expected = ", ".join(_LOOPBACK)
            message = f"the header Host names {named[:100]!r}, expected one of {expected}"
            raise ApiStatusError(403, "Forbidden", message)
        given = headers.get("Authorization", "")
        token = given[len(_SCHEME) :].strip() if given.lower().startswith(_SCHEME) else ""
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            raise ApiStatusError(401, "Unauthorized", "Unauthorized")


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
