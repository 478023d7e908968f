"""The demo's gate: size and number of requests, whatever they declare, and whoever else is there."""

from __future__ import annotations

import asyncio

import pytest

from bleurt_repro.metric.demo.serve import ADDRESSES, Gate
from bleurt_repro.metric.demo.visitor_input import POSTS_A_MINUTE, REQUEST_MEGABYTES

LIMIT = REQUEST_MEGABYTES << 20


async def echo_size(scope, receive, send):
    """Read the whole body, as a web framework does, and answer with its size."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client has gone")
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def ask(gate, pieces=(b"",), *, method="POST", client="10.0.0.1", **headers):
    """Return status, headers and body of the answer to one request whose body comes in pieces."""
    waiting, sent = list(pieces), []

    async def receive():
        piece = waiting.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "headers": named, "client": (client, 1)}
    asyncio.run(gate(scope, receive, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"].decode()


def test_what_is_small_passes():
    assert ask(Gate(echo_size), [b"ab", b"c"], content_length="3")[::2] == (200, "3")


def test_a_body_of_just_the_limit_passes():
    assert ask(Gate(echo_size), [bytes(LIMIT)])[::2] == (200, str(LIMIT))


@pytest.mark.parametrize("declared", [None, "3", "none of your business"])
def test_a_body_that_declares_too_little_is_measured(declared):
    headers = {"content_length": declared} if declared else {}
    pieces = [bytes(1 << 20)] * (REQUEST_MEGABYTES + 5)
    status, _, text = ask(Gate(echo_size), pieces, **headers)
    assert (status, text.startswith(f"a request may have at most {REQUEST_MEGABYTES} MB")) == (413, True)


def test_a_body_that_declares_too_much_is_not_read():
    status, _, _ = ask(Gate(echo_size), [], content_length=str(LIMIT + 1))
    assert status == 413


def test_an_address_that_asks_too_often_waits_a_minute():
    now = [0.0]
    gate = Gate(echo_size, clock=lambda: now[0])
    assert [ask(gate)[0] for _ in range(POSTS_A_MINUTE)] == [200] * POSTS_A_MINUTE
    status, headers, text = ask(gate)
    assert (status, headers[b"retry-after"]) == (429, b"60")
    assert text.startswith(f"at most {POSTS_A_MINUTE} requests a minute")
    assert ask(gate, method="GET")[0] == 200
    assert ask(gate, client="10.0.0.2")[0] == 200
    assert ask(gate, x_forwarded_for="192.0.2.1, 10.0.0.1")[0] == 200
    now[0] = 61.0
    assert ask(gate)[0] == 200


def test_the_number_of_addresses_remembered_is_bounded():
    gate = Gate(echo_size)
    for number in range(ADDRESSES + 10):
        assert gate._admits(str(number))
    assert len(gate._seen) == ADDRESSES


def test_faults_of_the_application_are_its_own():
    async def faulty(scope, receive, send):
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError, match="a fault"):
        ask(Gate(faulty))
