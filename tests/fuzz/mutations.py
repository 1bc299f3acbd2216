"""Reviews as nobody would write them, made of real ones; the same for the same seed.

A mutated review is a real one of which a few places have been changed: as a structure (another value, a
part of another review, a field more, less or twice) or as bytes (flipped, cut, doubled, spliced, not
UTF-8, nested without end).
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

DEEP = 3000
"""Levels of nesting; Python gives up at a thousand."""

TEXTS = (
    "", " ", "a", "-", ".", "/", "..", "a" * 64, "a" * 254, "a" * 300, "A_b", "é", "\u202e", "\x00", "\n", "\x1b[31m",
    "💥", "e\u0301" * 40, "default", "root", "closed", "0", "1", "-1", "1.5", "1e9", "1e999", "99999999999999999999", "0x10",
    "500m", "1Gi", "1Ei", "100%", "1h", "-1s", "9e99h", "2006-01-02T15:04:05Z", "0001-01-01T00:00:00Z", "soon", "* * * * *",
    "*/0 * * * *", "61 25 32 13 8", "TZ=Nowhere/Land 0 0 * * *", "Europe/Berlin", "(", "[a-z", "(a+)+$", "^(?:x{1,1000}){1,1000}$",
    "{{", "$(A)", "true", "null", "NaN", "9" * 5000, "a=" + "9" * 5000, "0x" + "f" * 5000, "{a: &a [x, x], b: [*a, *a]}", "<<: {a: []}", "../../etc/passwd", "volcano", "PodFailed", "RestartJob", "*", "a=b,c in (d)",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 7, 255, 256, 1000, 65535, 65536, 100_001, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53, 2**63 - 1, -(2**63),
    2**64 - 1, 0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, 5e-324,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *TEXTS,
    *NUMBERS,
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": ""},
)
KEYS = (
    "", "a", "metadata", "spec", "status", "name", "namespace", "labels", "annotations", "finalizers", "ownerReferences",
    "deletionTimestamp", "generateName", "tasks", "template", "containers", "initContainers", "ephemeralContainers", "env", "ports",
    "resources", "limits", "requests", "volumes", "volumeMounts", "affinity", "tolerations", "topologySpreadConstraints", "plugins",
    "policies", "queue", "minAvailable", "minMember", "replicas", "dependsOn", "partitionPolicy", "networkTopology", "parent",
    "capability", "guarantee", "deserved", "schedule", "jobTemplate", "jobSpec", "flows", "members", "selector", "tier", "subGroupPolicy",
    "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights", "volcano.sh/resource-group", "~1", "a/b", "a" * 70, "\x00", "é", "__proto__",
)  # fmt: skip
BYTES = (
    b"", b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"NaN",
    b"-", b"1e400", b"-1e400", b"9" * 400, b"0." + b"3" * 400, b"00", b'\\ud800', b"\\udc00\\ud800", b"\\u0000", b"\\x41", b"//", b"/*",
    b'{"a":1,"a":2}', b'"uid":"other",', b'"object":null,', b'"request":null,', b'"kind":"Pod",', b'"spec":{},', b'"metadata":null,',
)  # fmt: skip


class Mutator:
    """Makes mutated reviews."""

    def __init__(self, seed: str, bodies: Sequence[bytes]) -> None:
        """Make them of these bodies.

        Args:
            seed: The same seed makes the same reviews.
            bodies: Real reviews.
        """
        self._random = Random(seed)
        self._bodies = bodies
        self._structural = (
            self._replace, self._replace, self._remove, self._double, self._add, self._graft, self._wrap, self._rename,
        )  # fmt: skip

    def pick(self, count: int) -> int:
        """A number below another."""
        return int(self._random.random() * count)

    def mutated(self, body: bytes) -> bytes:
        """A body of which something has been changed."""
        chance = self._random.random()
        if chance < 0.8:
            review = msgspec.json.decode(body)
            for _ in range(1 + self.pick(4)):
                self._change(review)
            body = msgspec.json.encode(review)
        if chance > 0.74:
            body = mangled(self._random, body, self._bodies)
        return body

    def _change(self, review: Any) -> None:
        """Change one place, mostly within an object."""
        here: Any = review
        within = review.get("request") if isinstance(review, dict) else None
        if isinstance(within, dict) and self._random.random() < 0.93:
            objects = [within.get("object"), within.get("oldObject")]
            there = [each for each in objects if isinstance(each, dict) and each]
            here = there[self.pick(len(there))] if there else within
        while True:
            inner = [
                each
                for each in (here.values() if isinstance(here, dict) else here)
                if isinstance(each, (dict, list)) and each
            ]
            if not inner or self._random.random() < 0.2:
                break
            here = inner[self.pick(len(inner))]
        if here:
            keys: Sequence[Any] = list(here) if isinstance(here, dict) else range(len(here))
            act: Callable[[Any, Any], None] = self._structural[self.pick(len(self._structural))]
            act(here, keys[self.pick(len(keys))])

    def _value(self) -> Any:
        found = VALUES[self.pick(len(VALUES))]
        # What is put in must not be one object with what is put in elsewhere.
        return (
            msgspec.json.decode(msgspec.json.encode(found))
            if isinstance(found, (dict, list))
            else found
        )

    def _replace(self, here: Any, key: Any) -> None:
        here[key] = self._value()

    def _remove(self, here: Any, key: Any) -> None:
        del here[key]

    def _double(self, here: Any, key: Any) -> None:
        copy = msgspec.json.decode(msgspec.json.encode(here[key]))
        if isinstance(here, list):
            times = 1 if self._random.random() < 0.98 else 200
            here.extend(copy for _ in range(times))
        else:
            here[KEYS[self.pick(len(KEYS))]] = copy

    def _add(self, here: Any, key: Any) -> None:
        if isinstance(here, list):
            here.insert(key, self._value())
        else:
            here[KEYS[self.pick(len(KEYS))]] = self._value()

    def _graft(self, here: Any, key: Any) -> None:
        """Put a part of another review here."""
        part = msgspec.json.decode(self._bodies[self.pick(len(self._bodies))])
        for _ in range(2 + self.pick(6)):
            inner = list(part.values()) if isinstance(part, dict) else part
            if not isinstance(inner, list) or not inner:
                break
            part = inner[self.pick(len(inner))]
        here[key] = part

    def _wrap(self, here: Any, key: Any) -> None:
        here[key] = (
            [here[key]] if self._random.random() < 0.5 else {KEYS[self.pick(len(KEYS))]: here[key]}
        )

    def _rename(self, here: Any, key: Any) -> None:
        if isinstance(here, dict):
            name = KEYS[self.pick(len(KEYS))]
            here[key[:-1] if self._random.random() < 0.5 else name] = here.pop(key)
        else:
            here.reverse()


def mangled(random: Random, body: bytes, others: Sequence[bytes]) -> bytes:
    """Bytes of which some have been flipped, cut, doubled, put in or taken from elsewhere."""
    for _ in range(1 + int(random.random() * 3)):
        size = len(body)
        start = int(random.random() * (size + 1))
        end = min(size, start + int(random.random() ** 3 * 200))
        chance = random.random()
        if chance < 0.3 and start < size:
            flipped = body[start] ^ (1 << int(random.random() * 8))
            body = body[:start] + bytes((flipped,)) + body[start + 1 :]
        elif chance < 0.55:
            body = body[:start] + BYTES[int(random.random() * len(BYTES))] + body[start:]
        elif chance < 0.8:
            body = body[:start] + body[end:]
        elif chance < 0.8:
            body = body[:end] + body[start:end] + body[end:]
        elif chance < 0.9:
            other = others[int(random.random() * len(others))]
            at = int(random.random() * len(other))
            body = body[:start] + other[at : at + end - start] + body[end:]
        elif chance < 0.94:
            body = body[:start]
        elif chance < 0.96:
            opening = (b"[", b'{"a":')[int(random.random() * 2)]
            body = body[:start] + opening * int(random.random() * DEEP) + body[start:]
        elif chance < 0.98:
            body = body.decode("utf-8", "replace").encode("utf-16" if chance < 0.97 else "utf-7")
        else:
            body = random.randbytes(int(random.random() ** 3 * 2000))
    return body
