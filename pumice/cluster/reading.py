"""Reading of what an API server answers: JSON of any depth, events of a watch, and objects for a watch cache.

Objects are decoded once, straight from the bytes, and equal parts of large ones are kept once.

Pods of one template have the same containers, affinity and tolerations, and almost the same labels and annotations. A template
may take a megabyte of JSON and twenty times as much as Python objects, and a Job may have any number of pods. So of objects
with many bytes, parts are compared with those of other objects, and each is kept once. Small objects are left alone: they
are most of all objects, and comparing takes longer than decoding.

msgspec stops at a depth that depends on the Python version and on the caller. API servers store objects that are nested up to
10,000 levels deep, for example in a Job's pod template. One such object must not end the watch of its kind, and a list must not
fail because of it. So what is nested too deeply is left out.

A watch answers with one JSON object on each line. The object inside an event stays undecoded (`msgspec.Raw`), so that the
reader decodes it once, into its own struct.
"""

import re
import sys
from collections import ChainMap
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from pumice.api import keys
from pumice.api.meta import ObjectMeta, controller_of

T = TypeVar("T")

DEEPEST = 100
"""Levels that are kept of a body that cannot be decoded as it is; no valid object has as many."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    """Decode a body; what is nested too deeply to be decoded is null.

    Raises:
        msgspec.MsgspecError: The body is not what the decoder expects.
    """
    try:
        return decoder.decode(body)
    except RecursionError:
        return decoder.decode(_shallow(bytes(body)))


def _shallow(body: bytes) -> bytes:
    """A body with null in place of every value that is nested deeper than `DEEPEST`."""
    parts: list[bytes] = []
    start = depth = 0
    for token in _TOKEN.finditer(body):
        match body[token.start() : token.start() + 1]:
            case b"{" | b"[":
                depth += 1
                if depth == DEEPEST + 1:
                    parts += (body[start : token.start()], b"null")
            case b"}" | b"]":
                depth -= 1
                if depth == DEEPEST:
                    start = token.end()
    return b"".join([*parts, body[start:]])


class _Frame(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decoder = msgspec.json.Decoder(_Frame)


async def frames(
    chunks: AsyncIterable[bytes],
) -> AsyncGenerator[tuple[str, msgspec.Raw], None]:
    """Split chunks into events.

    A last line without a line end is dropped: the connection broke there, and the watch continues after the event
    before.

    Yields:
        Event type and the object's JSON.

    Raises:
        msgspec.DecodeError: When a complete line is not a watch event.
    """
    rest: list[bytes] = []
    async for chunk in chunks:
        *lines, tail = chunk.split(b"\n")
        if lines:
            # Joining only when a line ends keeps a large event that arrives in many chunks linear.
            lines[0] = b"".join((*rest, lines[0]))
            rest.clear()
        if tail:
            rest.append(tail)
        for line in lines:
            if line:
                frame = decode(_decoder, line)
                yield frame.type, frame.object


LARGE = 8 * 1024
"""Bytes of JSON from which on parts of an object are shared; an ordinary pod has four thousand."""

_LEAST = 512
"""Bytes of JSON from which on a part is shared."""

_LARGE_MAP = 4 * 1024
"""Size from which on labels and annotations are kept as the difference from those of another object."""

_ENTRY = 64
"""Size of an entry besides its value."""

_SECTIONS = frozenset({"metadata", "spec", "status"})
"""Fields of an object whose own fields are its parts; each other field is a part itself."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that cannot be decoded.

    Attributes:
        raw: Its JSON, for further tries.
        error: Why.
    """

    raw: bytes
    error: Exception


Read: TypeAlias = T | Unreadable
"""An object, or the error of reading it."""


class ObjectReader(Generic[T]):
    """Reads the objects of one kind.

    Attributes:
        parts: Their equal parts.
    """

    def __init__(self, into: type[T], trim: Callable[[T], None] | None = None) -> None:
        """Create a reader.

        Args:
            into: msgspec struct (or `dict`) into which objects are decoded.
            trim: Drops the parts of an object that nothing reads.
        """
        self.parts = SharedParts()
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(into)
        self._trim = trim

    def read(self, raw: msgspec.Raw | bytes) -> Read[T]:
        """Decode an object; an error is returned, not raised."""
        try:
            read = decode(self._decoder, raw)
            if isinstance(read, dict) and isinstance(meta := read.get("metadata"), dict):
                meta.pop("managedFields", None)  # never read, and often larger than the rest
            if self._trim is not None:
                self._trim(read)
            return read if len(raw) < LARGE else self.parts.share(read)
        except Exception as error:
            # Its own bytes, not those of the whole page; without the traceback, which would keep them.
            return Unreadable(bytes(raw), error.with_traceback(None))


class SharedParts:
    """Parts of the objects of one kind. A part is forgotten when no object has it any more."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._parts)

    def share(self, obj: T) -> T:
        """An object that was just decoded, with parts of earlier ones in place of its own equal ones.

        Args:
            obj: A msgspec struct or a dict, with no reference to it elsewhere. It is changed.
        """
        meta = getattr(obj, "metadata", None)
        if isinstance(meta, ObjectMeta):
            for name in ("labels", "annotations"):
                texts = getattr(meta, name)
                _replace(meta, name, texts, self._text_map(meta, name, texts))
        for name, value in _fields(obj):
            if name in _SECTIONS:
                for inner, part in _fields(value):
                    _replace(value, inner, part, self._part(type(value).__name__ + inner, part))
            else:
                _replace(obj, name, value, self._part(type(obj).__name__ + name, value))
        self.sweep()
        return obj

    def sweep(self) -> None:
        """Forget parts that nothing else refers to; does nothing at most calls if there are many parts."""
        parts = self._parts
        self._turns += 1
        if self._turns * 16 < len(parts):
            return
        self._turns = 0
        # Two references: the table's, and that of the argument.
        for key in [key for key in parts if sys.getrefcount(parts[key]) <= 2]:
            del parts[key]

    def _part(self, what: str, part: Any) -> Any:
        if not isinstance(part, dict | list | msgspec.Struct) or part == {}:
            return part
        try:
            text = msgspec.json.encode(part)
        except (ValueError, OverflowError, RecursionError, TypeError):
            return part  # it was decoded, but cannot be encoded: for example a number of 30 digits
        if len(text) < _LEAST:
            return part
        return self._parts.setdefault((what, blake2b(text).digest()), part)

    def _text_map(
        self, meta: ObjectMeta, name: str, texts: dict[str, str] | None
    ) -> dict[str, str] | None:
        """Labels or annotations. Of most pods of a template they are the difference from those of another pod."""
        if texts is None or (size := _size(texts)) < _LARGE_MAP:
            return texts
        owner = controller_of(meta)
        template = owner.uid if owner is not None else "", texts.get(keys.TASK_SPEC)
        key = name, template, hash(frozenset(texts))
        base: dict[str, str] = self._parts.setdefault(key, texts)
        if base is texts:
            return texts
        own = {each: text for each, text in texts.items() if base.get(each) != text}
        if _size(own) * 8 > size or base.keys() != texts.keys():
            self._parts[key] = texts
            return texts
        return ChainMap(own, base)  # type: ignore[return-value]


def _size(texts: dict[str, str]) -> int:
    return sum(map(len, texts.values())) + _ENTRY * len(texts)


def _fields(obj: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, dict):
        return iter(list(obj.items()))
    names = obj.__struct_fields__ if isinstance(obj, msgspec.Struct) else ()
    return ((name, getattr(obj, name)) for name in names)


def _replace(obj: Any, name: str, old: Any, new: Any) -> None:
    if new is old:
        return
    if isinstance(obj, dict):
        obj[name] = new
    else:
        msgspec.structs.force_setattr(obj, name, new)
