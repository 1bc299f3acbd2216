"""Errors of requests without a response, in the words of kubectl.

Messages name the address and the cause; the names of classes and functions of the HTTP library are left out.
"""

import os
import re
import socket
import ssl

import aiohttp

from pumice.cluster.errors import Unavailable

CONNECTION_FAILED = "ConnectionFailed"
"""Reason of an error if the server did not answer."""

NOT_TRUSTED = "CertificateNotTrusted"
"""Reason of an error if the server's certificate is not accepted."""

_NUMBER = re.compile(r"\[Errno (\d+)\]")
"""Finds error numbers in a text: if several addresses of a name were tried, they are only there."""


def failure(error: Exception, server: str, context: str) -> Unavailable:
    """The error of a request without a response.

    Args:
        error: The exception of the HTTP library or of the system.
        server: Base URL of the API server.
        context: Verb and path of the request.
    """
    reason = CONNECTION_FAILED
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = NOT_TRUSTED
    return Unavailable(0, reason, f"cannot reach {server}: {_cause(error)}", context=context)


def _cause(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _tls(error.certificate_error)
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return "invalid address, expected http://HOST[:PORT] or https://HOST[:PORT]"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy does not answer: {_system(error.os_error)}"
        case aiohttp.ClientConnectorError():
            return _system(error.os_error)
        case aiohttp.ClientResponseError():
            return "the answer is not HTTP; check the scheme and the port of the address"
        case OSError():
            return _system(error)
        case _:
            return str(error) or "the connection broke"


def _system(error: OSError) -> str:
    """The system's message for an error."""
    if isinstance(error, ssl.SSLError):
        return _tls(error)
    if isinstance(error, socket.gaierror):
        return f"the host name cannot be resolved ({error.strerror})"
    found = _NUMBER.search(str(error))
    number = error.errno or (int(found[1]) if found else None)
    return (os.strerror(number) if number else str(error) or "the connection broke").lower()


def _tls(error: Exception) -> str:
    """OpenSSL's message, without the name of the library and its line number."""
    text = re.sub(r" \(_ssl\.c:\d+\)$", "", str(getattr(error, "strerror", "") or error))
    return re.sub(r"^\[SSL(: (\w+))?\] ", "TLS: ", text)
