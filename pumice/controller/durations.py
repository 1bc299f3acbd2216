"""Durations as Kubernetes writes them (`1h30m`, `10s`, `1.5s`)."""

import re

__all__ = ["format_duration", "parse_duration"]

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> float | None:
    """Read a duration as seconds; None when the text is none, or is negative."""
    if text == "0":
        return 0.0
    seconds = 0.0
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        seconds += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return seconds if text else None


def format_duration(seconds: float) -> str:
    """Write whole seconds as `metav1.Duration` does: `1h2m3s`, `2m0s`, `7s`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"
