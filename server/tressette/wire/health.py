"""The standard health service, for load balancers and supervisors (grpc.health.v1).

Its messages and stubs are those of grpcio-health-checking; the servicer is not, because that one writes to a
watcher while it holds the lock that a change of status needs, so a watcher that does not read would hold up
the drain, and because its watches never end, so that stopping would take the whole grace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

OVERALL: Final = ""
"""The service name that stands for the whole server."""

_Status = int  # of HealthCheckResponse; the module has no types
_MAX_WATCHES: Final = 256


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # its module has no types
    """Serves one status for each of ``services`` and one for the server; all NOT_SERVING at first."""

    def __init__(self, services: Iterable[str]) -> None:
        self._statuses: dict[str, _Status] = dict.fromkeys(
            (OVERALL, *services), health_pb2.HealthCheckResponse.NOT_SERVING
        )
        self._changed = asyncio.Event()
        self._closed = False
        self.watches: set[asyncio.Task[Any]] = set()

    def add_to(self, server: grpc.aio.Server) -> None:
        """Have a server serve it."""
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    def set_serving(self, serving: bool) -> None:
        """Change every status."""
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if serving else response.NOT_SERVING
        self._statuses = dict.fromkeys(self._statuses, status)
        self._notify()

    def close(self) -> None:
        """Have every watch end once it has said the last status."""
        self._closed = True
        self._notify()

    def _notify(self) -> None:
        """Wake all watches; the next change has an event of its own, so that none can be missed."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _status(self, service: str) -> _Status | None:
        return self._statuses.get(service)

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> Any:  # noqa: N802
        """The status of one service now."""
        status = self._status(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        return health_pb2.HealthCheckResponse(status=status)

    async def List(self, _request: health_pb2.HealthListRequest, _context: Any) -> Any:  # noqa: N802
        """The status of every service now."""
        return health_pb2.HealthListResponse(
            statuses={
                service: health_pb2.HealthCheckResponse(status=status)
                for service, status in self._statuses.items()
            }
        )

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:  # noqa: N802
        """The status now, and again whenever it changes, until the server stops."""
        if len(self.watches) >= _MAX_WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{_MAX_WATCHES} watches are open")
        task = asyncio.current_task()
        assert task is not None
        self.watches.add(task)
        try:
            said: _Status | None = None
            while True:
                changed = self._changed
                status = self._status(request.service)
                if status is None:
                    status = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
                if status != said:
                    said = status
                    await context.write(health_pb2.HealthCheckResponse(status=status))
                elif self._closed:
                    return
                else:
                    await changed.wait()
        finally:
            self.watches.discard(task)
