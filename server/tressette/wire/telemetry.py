"""Spans of the calls that a server gets, for OpenTelemetry: its standard interceptor for grpc.aio servers.

Each call is one span, named after its method and exported when it ends; that of Play lasts as long as the
stream. What passes on a stream makes none. Where they go is said by OpenTelemetry's own variables (OTEL_*).

Decisions:
1. The standard interceptor iterates over what a streaming handler gives, and fails with a TypeError for one
   that is a coroutine and writes by itself, as ``Play`` and the health service's ``Watch`` are. So those are
   made generators that give nothing before it sees them. As they never yield, its context token never
   crosses one either.
2. The provider is none that others of the process would find: nothing else here makes spans.
3. What OpenTelemetry has to say of itself (a collector that does not answer) goes to the operational log;
   left alone it would be plain text among JSON.

Needs the packages of the extra ``telemetry``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Any, Final

import grpc
import structlog

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = structlog.get_logger("tressette.telemetry")

_EXPORTERS: Final = "opentelemetry_traces_exporter"
_PROTOCOLS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
_SERVICE: Final = "service.name"
_LOGGER: Final = "opentelemetry"
_LAST_S: Final = 3.0
"""How long the last spans may take to be exported when the server ends, in seconds."""
_NOTHING: Final[tuple[object, ...]] = ()


class TelemetryUnavailable(Exception):
    """A package that it takes is not installed, or its variables ask for what cannot be."""


class Telemetry:
    """Makes and exports spans until it is closed. exporters: where they go; None: as the environment says.
    Raises TelemetryUnavailable.

    ``interceptors`` are for the server whose calls are meant, in this order."""

    def __init__(self, exporters: Sequence[SpanExporter] | None = None) -> None:
        try:
            from opentelemetry.instrumentation.grpc import aio_server_interceptor
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ModuleNotFoundError as error:
            raise TelemetryUnavailable(
                f"telemetry needs the package {error.name}: pip install 'tressette-arena[telemetry]'"
            ) from None
        if exporters is None:
            exporters = _exporters()
        resource = Resource.create()
        if str(resource.attributes[_SERVICE]).startswith("unknown_service"):
            ours = {_SERVICE: "tressette-arena", "service.version": version("tressette-arena")}
            resource = resource.merge(Resource(ours))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._exporters = exporters
        for exporter in exporters:
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        standard: grpc.aio.ServerInterceptor = aio_server_interceptor(self._provider)  # type: ignore[no-untyped-call]
        self.interceptors: tuple[grpc.aio.ServerInterceptor, ...] = (standard, _AsGenerators())
        self._forward = _Forward()
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(self._forward)
        logger.propagate = False

    async def close(self) -> None:
        """Export what is left, for about ``_LAST_S`` seconds at most, and end."""
        ending = asyncio.create_task(asyncio.to_thread(self._provider.shutdown))
        done, _ = await asyncio.wait((ending,), timeout=_LAST_S)
        if not done:
            log.warning("spans lost", reason=f"not exported within {_LAST_S:g} seconds")
            for exporter in self._exporters:
                exporter.shutdown()  # which ends its attempts
            await ending
        logger = logging.getLogger(_LOGGER)
        logger.removeHandler(self._forward)
        logger.propagate = True


def _exporters() -> list[SpanExporter]:
    """Those that OTEL_TRACES_EXPORTER names, ``otlp`` where it is not set. Raises TelemetryUnavailable."""
    names = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    return [_exporter(name.strip()) for name in names.split(",") if name.strip() != "none"]


def _exporter(name: str) -> SpanExporter:
    protocol = (
        os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "grpc"
    )
    known = _PROTOCOLS.get(protocol, protocol) if name == "otlp" else name
    found = entry_points(group=_EXPORTERS, name=known)
    if not found:
        installed = ", ".join(sorted(one.name for one in entry_points(group=_EXPORTERS)))
        raise TelemetryUnavailable(
            f"OTEL_TRACES_EXPORTER: no exporter {known!r} is installed; there are {installed}"
        )
    try:
        exporter: SpanExporter = found[known].load()()
    except Exception as error:  # whatever a package makes of its variables
        raise TelemetryUnavailable(f"the exporter {known!r} does not start: {error}") from error
    return exporter


class _AsGenerators(grpc.aio.ServerInterceptor):
    """Makes generators of streaming handlers that are coroutines, see decision 1."""

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """The handler of a call."""
        handler = await continuation(handler_call_details)
        if handler is None or not handler.response_streaming:
            return handler
        behaviour = handler.stream_stream or handler.unary_stream
        if not inspect.iscoroutinefunction(behaviour):
            return handler

        async def generator(requests: Any, context: Any) -> AsyncIterator[Any]:
            await behaviour(requests, context)
            for response in _NOTHING:
                yield response

        make = (
            grpc.stream_stream_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_stream_rpc_method_handler
        )
        return make(
            generator,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


class _Forward(logging.Handler):
    """Brings what OpenTelemetry logs into the operational log; may be called in its threads."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        log.log(record.levelno, "opentelemetry", said=record.getMessage(), exc_info=record.exc_info)
