"""Protocol Buffers as kubectl sends them."""

from typing import Any

import pytest

from pumice.embedded import protobuf
from pumice.embedded.statuses import ApiStatusError


def varint(number: int) -> bytes:
    out = b""
    number %= 1 << 64
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(kind: str, raw: bytes, api_version: str = "v1") -> bytes:
    meta = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, meta) + field(2, raw) + field(3, "") + field(4, "")


def test_a_namespace_as_kubectl_sends_it() -> None:
    # `kubectl create namespace foo`, v1.32.
    body = bytes.fromhex(
        "6b387300 0a0f0a02763112094e616d657370616365 121b 0a130a03666f6f12001a0022002a00320038004200"
        "12001a020a00 1a00 2200"
    )

    assert protobuf.decode(body) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "foo"},
        "spec": {},
    }


def test_maps_bytes_lists_and_numbers() -> None:
    labels = field(11, field(1, "a") + field(2, "b"))
    secret = field(1, field(1, "s") + labels) + field(2, field(1, "k") + field(2, b"\x00\xff"))
    port = field(1, "web") + field(3, 80) + field(4, field(1, 0) + field(2, 8080) + field(3, ""))
    named = field(3, 81) + field(4, field(1, 1) + field(3, "http"))
    service = field(2, field(1, port) + field(1, named))
    low = field(2, -5) + field(3, 1)

    assert protobuf.decode(envelope("Secret", secret))["data"] == {"k": "AP8="}
    assert protobuf.decode(envelope("Secret", secret))["metadata"]["labels"] == {"a": "b"}
    assert protobuf.decode(envelope("Service", service))["spec"]["ports"] == [
        {"name": "web", "port": 80, "targetPort": 8080},
        {"port": 81, "targetPort": "http"},
    ]
    decoded = protobuf.decode(envelope("PriorityClass", low))
    assert (decoded["value"], decoded["globalDefault"]) == (-5, True)


def test_quantities_are_texts() -> None:
    quota = field(2, field(1, field(1, "cpu") + field(2, field(1, "2"))))

    assert protobuf.decode(envelope("ResourceQuota", quota))["spec"] == {"hard": {"cpu": "2"}}


def job_of(container: bytes) -> bytes:
    """A batch Job with one container, with what Go writes of empty values."""
    pod = field(2, container) + field(3, "Never") + field(6, "") + field(11, 0) + field(14, b"")
    return field(1, field(1, "one")) + field(2, field(6, field(1, b"") + field(2, pod)))


def test_templates_as_kubectl_sends_them() -> None:
    main = field(1, "main") + field(2, "busybox") + field(3, "sh") + field(3, "-c")
    limits = field(1, field(1, "cpu") + field(2, field(1, "2")))
    main += field(7, field(1, "A") + field(2, "b")) + field(8, limits) + field(16, 0)

    decoded = protobuf.decode(envelope("Job", job_of(main), "batch/v1"))

    assert decoded["spec"]["template"]["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["sh", "-c"],
                "env": [{"name": "A", "value": "b"}],
                "resources": {"limits": {"cpu": "2"}},
            }
        ],
        "restartPolicy": "Never",
    }


def test_fields_that_are_not_known_are_skipped() -> None:
    raw = (
        field(1, field(1, "x")) + field(99, "new") + b"\x99\x06" + bytes(8) + b"\x9d\x06" + bytes(4)
    )

    assert protobuf.decode(envelope("ConfigMap", raw))["metadata"] == {"name": "x"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{}", 400),
        (b"k8s\x00", 400),
        (b"k8s\x00\x0a\x7f", 400),
        (b"k8s\x00\xff", 400),
        (envelope("ConfigMap", b"\x0b"), 400),
        (envelope("ConfigMap", field(1, field(1, b"\xff"))), 400),
        (envelope("CronJob", b"", "batch/v1"), 415),
        (envelope("Job", job_of(field(1, "main") + field(9, field(1, "data"))), "batch/v1"), 415),
    ],
    ids=[*map(str, range(7)), "a kind that is not read", "a field of a template that is not read"],
)
def test_what_cannot_be_read_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(ApiStatusError) as caught:
        protobuf.decode(body)

    assert caught.value.code == code


def test_every_kind_that_is_read_has_metadata_and_known_types() -> None:
    primitive = {"s", "b", "i", "t"}
    messages: dict[str, Any] = protobuf.MESSAGES
    for kind in protobuf.KINDS - {"DeleteOptions"}:
        assert messages[kind][1] == ("metadata", "ObjectMeta")
    for fields in messages.values():
        for _, type_ in fields.values():
            bare = type_.removeprefix("[]").removeprefix("{}")
            assert bare in primitive or bare in messages
