"""What a webhook process says of itself on its metrics port."""

import urllib.error
import urllib.request


def probe(port: int, path: str = "/readyz") -> tuple[int, str]:
    """Status and text of an answer; 0 when there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def expiry(port: int) -> float:
    """What the metrics say of the served certificate's end."""
    _, text = probe(port, "/metrics")
    name = "pumice_certificate_expiry_timestamp_seconds "
    (line,) = (line for line in text.splitlines() if line.startswith(name))
    return float(line.removeprefix(name))
