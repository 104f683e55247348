"""Unary calls and lists, the base of all groups of calls of aio.Client."""
from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from berth._channels import Channels

A = TypeVar("A")
PAGE = 1000


class Calls:
    """Calls by the name of their service and method."""

    _channels: Channels

    async def _call(self, service: str, method: str, request: Any, response: type[A], gone_is_done: bool = False) -> A:
        return await self._channels.call(service, method, request, response, gone_is_done=gone_is_done)

    async def _pages(self, service: str, method: str, request: Any, response: type[A]) -> AsyncIterator[A]:
        while True:
            page: Any = await self._call(service, method, request, response)
            yield page
            request.page_token = page.next_page_token
            if not request.page_token:
                return
