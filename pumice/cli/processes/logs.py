"""Logging of the components: JSON lines for machines, coloured lines on a terminal."""

import logging
import sys
from collections.abc import Sequence
from enum import StrEnum

__all__ = ["Level", "configure", "verbosity"]

_DEBUG_VERBOSITY = 4
"""Verbosity from which on Volcano's components log single objects."""


class Level(StrEnum):
    """Levels of logging; a level includes the more severe ones."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def verbosity(level: Level, arguments: Sequence[str]) -> tuple[Level, list[str]]:
    """The level for Volcano's `-v N` and `--v=N`, and the arguments without them.

    Args:
        level: The level of Pumice's own flag.
        arguments: Arguments that Pumice does not know.
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
    """Send all logs to stderr.

    Args:
        json: Whether to write JSON lines; by default if stderr is not a terminal.
        level: Level of Pumice's loggers; libraries log at most `info`.
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
