"""Logging of the components: JSON lines for machines, coloured lines on a terminal."""

import logging
import sys
from collections.abc import Sequence
from enum import StrEnum

__all__ = ["Level", "configure", "verbosity"]

_DEBUG_VERBOSITY = 4
"""From where on Volcano's components tell of single objects."""


class Level(StrEnum):
    """What is logged, and what is worse."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def verbosity(level: Level, arguments: Sequence[str]) -> tuple[Level, list[str]]:
    """The level after Volcano's `-v N` and `--v=N`, and the arguments without them.

    Args:
        level: What Pumice's own flag says.
        arguments: Those that are none of Pumice's.
    """
    others: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if name not in ("-v", "--v"):
            others.append(argument)
            continue
        if not equals and rest and rest[0].isdecimal():
            value = rest.pop(0)
        if value.isdecimal() and int(value) >= _DEBUG_VERBOSITY:
            level = Level.DEBUG
    return level, others


def configure(*, json: bool | None = None, level: Level = Level.INFO) -> None:
    """Send everything that is logged to stderr.

    Args:
        json: Whether to write JSON lines; by default wherever stderr is no terminal.
        level: What Pumice is to log; libraries never tell more than `info`.
    """
    import structlog

    if json is None:
        json = not sys.stderr.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor
    if json:
        renderer = structlog.processors.JSONRenderer()
        shared.append(structlog.processors.format_exc_info)
    else:
        from pumice.cli.output import coloured

        renderer = structlog.dev.ConsoleRenderer(colors=coloured(sys.stderr))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    number = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(number, logging.INFO))
    logging.getLogger("pumice").setLevel(number)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
