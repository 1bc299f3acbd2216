"""Who may ask: the user who started the page, and no other user of the machine.

Loopback keeps other machines out. Other users, and pages of other sites, do not have the secret of this start. It is in the
address that `pumice web` prints, and exchanged for a cookie at once, so that it stays in no history. The cookie is for requests of
this site alone, and the header Host must name this machine, so that no name that leads here (DNS rebinding) makes another page
this site.
"""

import hmac
import secrets

from aiohttp import web

from pumice.serving.http_server import HttpError, other_host

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: no other site may read, frame or script the page, and no code in a text runs."""

_SECRET = "secret"


class PageAccess:
    """The secret of one start, and the cookie for which it is exchanged."""

    def __init__(self) -> None:
        """Draw both."""
        self._secret = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    def address(self, port: int) -> str:
        """Where the page is, with the secret."""
        return f"http://127.0.0.1:{port}/?{_SECRET}={self._secret}"

    def check(self, request: web.BaseRequest, port: int) -> web.Response | None:
        """Refuse a request without access.

        Returns:
            The answer to a request that has the secret; None for one that has the cookie.

        Raises:
            HttpError: It names another host (403), is no GET (405), or has neither (401).
        """
        if problem := other_host(request.headers):
            raise HttpError(403, problem)
        if request.method != "GET":
            raise HttpError(405, f"{request.method}: this page can only be read", {"Allow": "GET"})
        # A browser sends a cookie to all ports of a host: two of these pages must not take each other's.
        name = f"pumice-web-{port}"
        given = request.query.get(_SECRET)
        if given is not None and _equal(given, self._secret):
            query = [(key, value) for key, value in request.query.items() if key != _SECRET]
            where = request.rel_url.with_query(query)
            answer = web.Response(status=303, headers={"Location": _local(str(where))})
            # Lax instead of Strict: the first request comes from a terminal or another page, and is redirected.
            answer.set_cookie(name, self._cookie, httponly=True, samesite="Lax", path="/")
            return answer
        cookies = _cookies(request, name)
        if given is None and any(_equal(each, self._cookie) for each in cookies):
            return None
        message = (
            "open the address that `pumice web` has printed; it holds the secret of this start"
        )
        raise HttpError(401, message)


def _local(address: str) -> str:
    """A path of this site: `//host/` would be another one."""
    return "/" + address.lstrip("/\\")


def _cookies(request: web.BaseRequest, name: str) -> list[str]:
    """The values of a cookie; beside it stand those of other ports, well formed or not."""
    found = []
    for header in request.headers.getall("Cookie", ()):
        for each in header.split(";"):
            key, _, value = each.partition("=")
            if key.strip() == name:
                found.append(value.strip())
    return found


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
