"""The options of ``tressette serve`` for whoever operates it: how it is watched and how it stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import click

from tressette.commands.config_file import Setting
from tressette.wire.server import BadAddress, split_address

_F = TypeVar("_F", bound=Callable[..., Any])

_DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Operations:
    """drain_s: for how many seconds games under way are played on when the server is asked to stop;
    reflection: whether tools may ask for the services and messages; metrics_address: HOST:PORT, None: there
    are no metrics; telemetry: whether calls make OpenTelemetry spans."""

    drain_s: int
    reflection: bool
    metrics_address: str | None
    telemetry: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Operations:
        """What options stand for."""
        return cls(
            options["drain_s"], options["reflection"], options["metrics_address"], options["telemetry"]
        )


def _address(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    address = f"127.0.0.1:{text}" if text.isdecimal() else text
    try:
        split_address(address)
    except BadAddress as error:
        raise click.BadParameter(str(error)) from None
    return address


_option = partial(click.option, cls=Setting, section="Operations", show_default=True)


def operations_options(function: _F) -> _F:
    """Adds the options to a command."""
    for option in (
        _option(
            "--metrics-address",
            callback=_address,
            metavar="[HOST:]PORT",
            help="Serve Prometheus metrics over HTTP there; without HOST for this machine only. Needs "
            "tressette-arena[metrics].",
        ),
        _option(
            "--telemetry/--no-telemetry",
            default=False,
            help="Whether calls make OpenTelemetry spans; where these go is set by the standard variables "
            "OTEL_*. Needs tressette-arena[telemetry].",
        ),
        _option(
            "--reflection/--no-reflection",
            default=False,
            help="Whether generic gRPC tools may ask for services and messages.",
        ),
        _option(
            "--drain-s",
            type=click.IntRange(0, _DAY_S),
            default=60,
            help="How many seconds games under way are played on after SIGTERM or Ctrl-C; then they are "
            "suspended into the record folder.",
        ),
    ):
        function = option(function)
    return function
