"""Calls to the servers of a cluster: connections, the leader, timeouts and retries, as clients/cpp has them.

Every call may be repeated: it has a request id, so the server does once what arrives twice. UNAVAILABLE,
RESOURCE_EXHAUSTED and CANCELLED are retried with exponential backoff and full jitter, never earlier than the server says.
One server of a cluster leads; the others refuse and name it.
"""
from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import AsyncIterator
from typing import Any, Optional, TypeVar

import grpc
import grpc.aio

from berth import errors
from berth._settings import Settings

R = TypeVar("R")

MAX_ANSWER = 64 << 20
REQUEST_ID = "berth-request-id"
LEADER = "berth-leader"
FIRST_BACKOFF_S, MAX_BACKOFF_S, MAX_ATTEMPTS = 0.1, 10.0, 100
MAX_BACKOFF_OF_SEVERAL_S = 1.0  # another may lead
CONNECT_S = 1.0
CLOSE_GRACE_S = 30.0
TIMES_LEFT_OUT = 3
_RETRYABLE = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"}


def new_request_id() -> str:
    """128 random bits in hex."""
    return secrets.token_hex(16)


def is_retryable(error: errors.BerthError) -> bool:
    """Whether the same call may succeed later."""
    return error.code in _RETRYABLE


class Backoff:
    """The waits between attempts: the n-th is uniform in [0, min(most, first * 2^n)], after the server's delay."""

    def __init__(self, most_s: float) -> None:
        self._most, self._bound = most_s, FIRST_BACKOFF_S

    def reset(self) -> None:
        """After a success."""
        self._bound = FIRST_BACKOFF_S

    def next(self, error: Optional[errors.BerthError]) -> float:
        """Seconds until the next attempt."""
        jitter = self._bound * random.random()
        self._bound = min(self._bound * 2, self._most)
        delay = error.retry_delay if error is not None else None
        return jitter + (delay.total_seconds() if delay is not None else 0.0)


class Choice:
    """Which of several servers is tried next, and whether at once: ServerChoice of clients/cpp."""

    def __init__(self, count: int) -> None:
        self.count, self.current = count, 0
        self._first_round, self._failed, self._left_out = True, [False] * count, [0] * count

    def stay(self) -> None:
        """The current one answered as the leader does."""
        self._first_round, self._failed, self._left_out = True, [False] * self.count, [0] * self.count

    def leave(self, answered: bool, leader: Optional[int]) -> bool:
        """It does not lead, or did not answer. True: the next one, now current, may be tried at once."""
        self._failed[self.current] = True
        self._left_out[self.current] = 0 if answered else TIMES_LEFT_OUT
        if leader is not None and not self._failed[leader]:
            self.current = leader
            return True
        for step in range(1, self.count if self._first_round else 0):
            server = (self.current + step) % self.count
            if not self._failed[server]:
                self.current = server
                return True
        self._first_round, self._failed = False, [False] * self.count
        self.current = self._next()
        return False

    def _next(self) -> int:
        for step in range(1, self.count + 1):
            server = (self.current + step) % self.count
            if self._left_out[server] == 0:
                return server
            self._left_out[server] -= 1
        return (self.current + 1) % self.count


def _options(several: bool) -> list[tuple[str, Any]]:
    # gRPC's keepalive finds a dead server on an idle stream. With several servers: sooner, because another may lead.
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", MAX_ANSWER), ("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0),
        ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 400),
        ("grpc.keepalive_time_ms", 6_000 if several else 30_000),
        ("grpc.keepalive_timeout_ms", 3_000 if several else 10_000), ("grpc.http2.max_pings_without_data", 0)]
    if several:
        options += [("grpc.use_local_subchannel_pool", 1), ("grpc.min_reconnect_backoff_ms", int(CONNECT_S * 1000))]
    return options


class _Server:
    """The channel to one server, with its callables."""

    def __init__(self, channel: grpc.aio.Channel, secure: bool) -> None:
        self.channel, self.secure = channel, secure
        self._methods: dict[tuple[str, str], Any] = {}

    def method(self, shape: str, service: str, name: str, response: type) -> Any:
        """The callable of a method; `shape` as "unary_stream"."""
        found = self._methods.get((service, name))
        if found is None:
            found = getattr(self.channel, shape)(f"/berth.v1.{service}/{name}", request_serializer=_serialize,
                                                 response_deserializer=response.FromString)  # type: ignore[attr-defined]
            self._methods[service, name] = found
        return found

    def connected(self) -> bool:
        return bool(self.channel.get_state() == grpc.ChannelConnectivity.READY)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


class Channels:
    """The servers of one cluster. Belongs to the event loop in which it is first used."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._choice = Choice(len(settings.servers))
        self._servers: list[Optional[_Server]] = [None] * len(settings.servers)
        self._closing: set[asyncio.Future[Any]] = set()

    @property
    def several(self) -> bool:
        """Whether the cluster has more than one server."""
        return len(self._servers) > 1

    @property
    def server(self) -> str:
        """The address whose turn it is."""
        return self.settings.servers[self._choice.current]

    def backoff(self) -> Backoff:
        """For a sequence of attempts."""
        return Backoff(MAX_BACKOFF_OF_SEVERAL_S if self.several else MAX_BACKOFF_S)

    async def close(self) -> None:
        """Ends all calls."""
        for closing in list(self._closing):
            closing.cancel()
        for server in self._servers:
            if server is not None:
                await server.channel.close(None)
        self._servers = [None] * len(self._servers)

    def _current(self) -> _Server:
        index = self._choice.current
        server = self._servers[index]
        if server is None:
            address, options = self.settings.servers[index], _options(self.several)
            credentials = self.settings.credentials()
            channel = (grpc.aio.insecure_channel(address, options) if credentials is None else
                       grpc.aio.secure_channel(address, credentials, options))
            server = self._servers[index] = _Server(channel, credentials is not None)
        return server

    async def _connection(self, left_s: float) -> _Server:
        """The server whose turn it is. Another call may have dropped it in the meantime: then the next one."""
        while True:
            server = self._current()
            await self._await_connection(server, left_s)
            if server in self._servers:
                return server

    async def _await_connection(self, server: _Server, left_s: float) -> None:
        """Gives a broken connection a moment; with several servers, until it is connected or refused."""
        end = asyncio.get_running_loop().time() + min(left_s, CONNECT_S)
        while True:
            state = server.channel.get_state(try_to_connect=True)
            waits = {grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING} if self.several else {
                grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.CONNECTING}
            left = end - asyncio.get_running_loop().time()
            if state not in waits or left <= 0:
                return
            try:
                await asyncio.wait_for(server.channel.wait_for_state_change(state), left)
            except asyncio.TimeoutError:
                return

    def _ended(self, server: _Server, error: Optional[errors.BerthError], leader: str) -> bool:
        """After each attempt: chooses the server of the next one. True: it may be tried at once."""
        mine = self._servers[self._choice.current] is server
        if error is None or not is_retryable(error) or error.code == "RESOURCE_EXHAUSTED":
            if mine:
                self._choice.stay()
            return False
        connected = server.connected()
        if not connected:
            self._drop(server)  # the next connection reads the certificates again
        if not self.several or not mine:
            return False
        names = self.settings.servers
        at_once = self._choice.leave(connected, names.index(leader) if leader in names else None)
        return at_once and error.retry_delay is None

    def _drop(self, server: _Server) -> None:
        if (self.several or server.secure) and server in self._servers:
            self._servers[self._servers.index(server)] = None
            closing = asyncio.ensure_future(server.channel.close(grace=CLOSE_GRACE_S))  # other calls end by themselves
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def call(self, service: str, method: str, request: Any, response: type[R], timeout_s: Optional[float] = None,
                   request_id: str = "", gone_is_done: bool = False) -> R:
        """One unary call with retries. `gone_is_done`: NOT_FOUND is a success if an attempt before may have done it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + (self.settings.timeout_s if timeout_s is None else timeout_s)
        backoff, metadata, perhaps_done = self.backoff(), ((REQUEST_ID, request_id or new_request_id()),), False
        for _ in range(MAX_ATTEMPTS):
            while True:
                server = await self._connection(end - loop.time())
                connected = server.connected()
                try:
                    answer: R = await server.method("unary_unary", service, method, response)(
                        request, timeout=max(end - loop.time(), 0.001), metadata=metadata)
                except grpc.aio.AioRpcError as broken:
                    error = errors.from_rpc(broken)
                    at_once = self._ended(server, error, _leader_of(broken))
                else:
                    self._ended(server, None, "")
                    return answer
                if gone_is_done and perhaps_done and error.code == "NOT_FOUND":
                    return response()
                perhaps_done |= (connected or not self.several) and not error.message.startswith(errors.STANDBY)
                if not at_once or loop.time() >= end:
                    break
            wait = backoff.next(error)
            if not is_retryable(error) or loop.time() + wait >= end:
                raise error from None
            await asyncio.sleep(wait)
        raise error from None

    async def stream(self, service: str, method: str, request: Any, response: type[R],
                     timeout_s: Optional[float]) -> AsyncIterator[R]:
        """One attempt of a call with a stream of responses. `at_once` of an error: another server may be tried now."""
        server = await self._connection(CONNECT_S)
        call = server.method("unary_stream", service, method, response)(request, timeout=timeout_s)
        try:
            async for answer in call:
                if self._servers[self._choice.current] is server:
                    self._choice.stay()
                yield answer
        except grpc.aio.AioRpcError as broken:
            error = errors.from_rpc(broken)
            error.at_once = self._ended(server, error, _leader_of(broken))  # type: ignore[attr-defined]
            raise error from None
        finally:
            call.cancel()

    async def pause(self, backoff: Backoff, error: Optional[errors.BerthError]) -> None:
        """Between two attempts of a stream that has no end."""
        if error is None or not getattr(error, "at_once", False):
            await asyncio.sleep(backoff.next(error))

    def blocking_channel(self) -> grpc.Channel:
        """Another connection to the current server, for a thread; the caller closes it."""
        credentials, options = self.settings.credentials(), _options(self.several)
        if credentials is None:
            return grpc.insecure_channel(self.server, options)
        return grpc.secure_channel(self.server, credentials, options)

    def note(self, broken: grpc.RpcError) -> None:
        """A call on a blocking channel failed: chooses the server of the next one."""
        self._ended(self._current(), errors.from_rpc(broken), _leader_of(broken))


def _leader_of(broken: Any) -> str:
    trailers: Any = broken.trailing_metadata()
    return str(dict(list(trailers or ())).get(LEADER, ""))
