"""What an arena does, in numbers, for Prometheus.

Nothing is counted here: the arena and its service count anyway, and a scrape reads those counters. It reads
them in the event loop, between two passes of it, so that they fit together; a loop that does not get round to
it within ``_PATIENCE_S`` makes the scrape fail, which is what should be seen then.

Needs the package prometheus-client (the extra ``metrics``).
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import structlog

from tressette.record.writer import Record
from tressette.wire.server import ArenaServer, BadAddress, is_loopback, split_address

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = structlog.get_logger("tressette.metrics")

_PATIENCE_S: Final = 5.0
_TICK_S: Final = 0.25
"""How often it is measured how late the event loop is."""
_LAG_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class MetricsUnavailable(Exception):
    """The package that serves them is not installed."""


class LoopLag:
    """Measures how late a timer of the event loop is. ``counts``: by bucket of _LAG_BUCKETS, the last one for
    all that is later; ``total``: seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_LAG_BUCKETS) + 1)
        self.total = 0.0
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._wait()

    def _wait(self) -> None:
        self._due = self._loop.time() + _TICK_S
        self._timer = self._loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self.note(max(0.0, self._loop.time() - self._due))
        self._wait()

    def note(self, late_s: float) -> None:
        """Count one measurement."""
        self.counts[bisect.bisect_left(_LAG_BUCKETS, late_s)] += 1
        self.total += late_s

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def buckets(self) -> list[tuple[str, float]]:
        """(upper end, how many were not later), as Prometheus wants them."""
        ends = [*map(str, _LAG_BUCKETS), "+Inf"]
        return list(zip(ends, itertools.accumulate(self.counts), strict=True))


def snapshot(server: ArenaServer, record: Record | None, lag: LoopLag) -> list[Metric]:
    """Everything there is to know now."""
    from prometheus_client.core import CounterMetricFamily as Count
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import HistogramMetricFamily as Histogram

    service, arena = server.service, server.service.arena
    links = Counter(session.attached for mates in arena.sessions.values() for session in mates)
    written = record.bytes_written if record is not None else 0
    return [
        _labelled(
            Gauge("tressette_sessions", "Sessions, by whether they have a stream.", labels=("state",)),
            ((("attached",), links[True]), (("detached",), links[False])),
        ),
        _labelled(
            Gauge("tressette_games", "Games that are not over.", labels=("state",)),
            ((("running",), len(arena.games)), (("waiting",), len(arena.waiting))),
        ),
        Count("tressette_games_finished", "Games that were played to their ends.", arena.games_finished),
        Count("tressette_turns", "Answers to turns taken in, refused ones included.", arena.turns),
        _labelled(
            Count("tressette_faults", "Faults of bots.", labels=("kind", "effect")),
            arena.faults.items(),
        ),
        Gauge("tressette_streams", "Play streams that are open.", len(service.streams)),
        _labelled(
            Count("tressette_streams_ended", "Play streams that have ended, by reason.", labels=("reason",)),
            (((reason,), count) for reason, count in service.endings.items()),
        ),
        Gauge("tressette_draining", "1 while nothing new may begin, else 0.", int(arena.draining)),
        Count("tressette_record_bytes", "Bytes of record written; 0 where none is kept.", written),
        Histogram(
            "tressette_event_loop_lag_seconds",
            "How late a timer of the event loop was, measured four times a second.",
            buckets=lag.buckets(),
            sum_value=lag.total,
        ),
    ]


def _labelled(family: Any, samples: Iterable[tuple[Sequence[str], int]]) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, value)
    metric: Metric = family
    return metric


class _Collector:
    """Called in the threads of the HTTP server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: ArenaServer, record: Record | None) -> None:
        self._loop = loop
        self._server = server
        self._record = record
        self.lag = LoopLag()

    def describe(self) -> list[Metric]:
        """What the registry asks for when this is added to it, in the event loop's own thread."""
        return snapshot(self._server, self._record, self.lag)

    def collect(self) -> list[Metric]:
        """What the registry asks for at each scrape."""
        reading = asyncio.run_coroutine_threadsafe(self._snapshot(), self._loop)
        try:
            return reading.result(_PATIENCE_S)
        finally:
            reading.cancel()

    async def _snapshot(self) -> list[Metric]:
        return snapshot(self._server, self._record, self.lag)


class MetricsServer:
    """Serves the metrics over HTTP until it is closed. Raises MetricsUnavailable, and BadAddress for one that
    is malformed or taken. ``address``: where it listens."""

    def __init__(self, address: str, server: ArenaServer, record: Record | None) -> None:
        host, port = split_address(address)
        try:
            import prometheus_client
        except ModuleNotFoundError as error:
            raise MetricsUnavailable(
                f"metrics need the package {error.name}: pip install 'tressette-arena[metrics]'"
            ) from None
        registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        self._collector = _Collector(asyncio.get_running_loop(), server, record)
        registry.register(self._collector)
        try:
            self._http, self._thread = prometheus_client.start_http_server(port, host, registry)
        except OSError as error:
            self._collector.lag.stop()
            raise BadAddress(f"cannot listen on {address}: {error}") from None
        self.address = f"{address.rpartition(':')[0]}:{self._http.server_port}"
        if not is_loopback(host):
            log.warning("metrics can be read from other machines", address=self.address)

    async def close(self) -> None:
        """Serve no more. Scrapes under way are waited for, so the event loop must go on meanwhile."""
        self._collector.lag.stop()
        await asyncio.to_thread(self._http.shutdown)
        self._http.server_close()
        self._thread.join()
