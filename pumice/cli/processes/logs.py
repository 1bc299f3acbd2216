"""Logging of the components: JSON lines for machines, coloured lines on a terminal."""

import logging
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from pumice.api.fields import plain
from pumice.cli.options import Level

_DEBUG_VERBOSITY = 4
"""Verbosity from which on Volcano's components log single objects."""


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

    Text has no control characters, which names and messages of objects may hold.

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
        structlog.processors.format_exc_info,
    ]
    renderers: list[structlog.typing.Processor]
    if json:
        renderers = [structlog.processors.JSONRenderer()]
    else:
        from pumice.cli.output import coloured

        text = structlog.dev.ConsoleRenderer(
            colors=coloured(sys.stderr), exception_formatter=structlog.dev.plain_traceback
        )
        renderers = [_escaped, text]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
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


def _escaped(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """An entry without control characters; only a traceback has several lines."""

    def escaped(key: str, value: Any) -> Any:
        if key == "exception":
            return "\n".join(map(plain, value.split("\n")))
        return plain(value) if isinstance(value, str) else value

    return {key: escaped(key, value) for key, value in event.items()}
