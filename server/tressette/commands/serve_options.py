"""The options of ``tressette serve`` in groups, and the settings that they become.

Each group is a decorator. ``Settings.of`` turns the values of all of them into one frozen thing and refuses
what cannot be, always naming the option.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tressette.commands.config_file import Setting, load
from tressette.play.config import POLICIES, ConfigError, PlayConfig, policies_from
from tressette.rules.errors import UnknownPreset
from tressette.rules.events import FaultKind
from tressette.rules.presets import canonical_name
from tressette.wire.limits import Limits
from tressette.wire.logs import LEVELS, Format
from tressette.wire.server import BadAddress
from tressette.wire.tls import Tls, takes_protection

_F = TypeVar("_F", bound=Callable[..., Any])

_PLAY: Final = PlayConfig()
_LIMITS: Final = Limits()
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server is run with. tokens: the token file, None: bots are called by their labels; presets:
    canonical names; record: folder, None: nothing is kept; grace_s: how long a lost session is kept."""

    address: str
    tls: Tls | None
    tokens: Path | None
    presets: Sequence[str]
    play: PlayConfig
    grace_s: float
    limits: Limits
    record: Path | None
    log_level: str
    log_format: Format

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Settings:
        """The settings that options stand for. Raises click.UsageError."""
        return cls(
            address=options["address"],
            tls=_access(options),
            tokens=options["tokens"],
            presets=options["preset"],
            play=_play(options),
            grace_s=options["grace_s"],
            limits=Limits(**{name: options[name] for name in _LIMIT_NAMES}),
            record=options["record"],
            log_level=options["log_level"],
            log_format=options["log_format"],
        )


# -- from options to settings -------------------------------------------------------------------------

_LIMIT_NAMES: Final = (
    *("max_message_bytes", "max_answers", "max_matches", "max_sessions", "max_streams"),
    *("max_connection_streams", "messages_per_s", "burst", "hello_s"),
)
_PLAY_NAMES: Final = ("move_ms", "bank_ms", "increment_ms", "allowance_ms", "illegal_retries", "strikes")


def _access(options: Mapping[str, Any]) -> Tls | None:
    """How TLS is done, None without; refuses to stand open to other machines."""
    address, cert, key = options["address"], options["tls_cert"], options["tls_key"]
    try:
        open_to_others = takes_protection(address)
    except BadAddress as error:
        raise click.BadParameter(str(error), param_hint="--address") from None
    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key are needed together")
    if options["tls_client_ca"] is not None and cert is None:
        raise click.UsageError("--tls-client-ca needs --tls-cert and --tls-key")
    if open_to_others:
        missing = [] if cert is not None else ["--tls-cert", "--tls-key"]
        missing += [] if options["tokens"] is not None else ["--tokens"]
        if missing:
            raise click.UsageError(
                f"--address {address} can be reached from other machines, which takes TLS and tokens: "
                f"give {', '.join(missing)}"
            )
    return None if cert is None else Tls(cert, key, options["tls_client_ca"])


def _play(options: Mapping[str, Any]) -> PlayConfig:
    pairs = [text.partition("=") for text in options["policy"]]
    try:
        play = PlayConfig(
            policies=policies_from({kind: effect for kind, _, effect in pairs}),
            **{name: options[name] for name in _PLAY_NAMES},
        )
    except ConfigError as error:
        hint = "--" + error.name.replace("_", "-")
        raise click.BadParameter(error.reason, param_hint=hint) from None
    if not play.timed:
        raise click.UsageError("--move-ms 0 needs --bank-ms: an arena waits for nobody for ever")
    return play


def _known_presets(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise click.BadParameter("at least one is needed")
    try:
        return tuple(canonical_name(name) for name in names)
    except UnknownPreset as error:
        raise click.BadParameter(str(error)) from None


def _known_policies(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        kind, sign, effect = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r} is not KIND=EFFECT")
        try:
            PlayConfig(policies=policies_from({kind: effect}))
        except ConfigError as error:
            raise click.BadParameter(f"{text!r}: {error.reason}") from None
    kinds = [text.partition("=")[0] for text in texts]
    if len(set(kinds)) < len(kinds):
        raise click.BadParameter("a kind of fault is given twice")
    return texts


class _Seconds(click.FloatRange):
    """A number of seconds; that is never ``nan``, which no range keeps out."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As a range of numbers does."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


# -- the groups ---------------------------------------------------------------------------------------


def _together(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _section(title: str) -> Callable[..., Callable[[_F], _F]]:
    return partial(click.option, cls=Setting, section=title, show_default=True)


def _file() -> click.Path:
    return click.Path(exists=True, dir_okay=False, path_type=Path)


_access_option = _section("Access")
access_options = _together(
    _access_option(
        "--address",
        default="127.0.0.1:50051",
        metavar="HOST:PORT",
        help="Where to listen; port 0 takes a free one. An address that other machines can reach takes TLS "
        "and tokens.",
    ),
    _access_option(
        "--tokens",
        type=_file(),
        help="File of the bot tokens, made by `tressette token new`; its changes are followed. Without it "
        "bots are called by their labels.",
    ),
    _access_option("--tls-cert", type=_file(), help="Certificate chain (PEM). Needs --tls-key."),
    _access_option("--tls-key", type=_file(), help="Private key (PEM), not encrypted. Needs --tls-cert."),
    _access_option(
        "--tls-client-ca",
        type=_file(),
        help="Certificates (PEM) of the authorities that sign those of clients; without a client certificate "
        "nobody gets in. Needs --tls-cert and --tls-key.",
    ),
)

_match_option = _section("Matches")
match_options = _together(
    _match_option(
        "--preset",
        multiple=True,
        default=("tressette-21",),
        callback=_known_presets,
        metavar="NAME",
        help="Rules of the matches, from `tressette rules list`; repeat it to have several take turns.",
    ),
    _match_option(
        "--move-ms",
        type=click.IntRange(0, _DAY_MS),
        default=_PLAY.move_ms,
        help="Time for one answer, in milliseconds; 0: only the bank counts.",
    ),
    _match_option(
        "--bank-ms",
        type=click.IntRange(0, _DAY_MS),
        default=_PLAY.bank_ms,
        help="Time of a seat in a match on top of --move-ms, used when that is up.",
    ),
    _match_option(
        "--increment-ms",
        type=click.IntRange(0, _DAY_MS),
        default=_PLAY.increment_ms,
        help="Added to the bank after each answer.",
    ),
    _match_option(
        "--allowance-ms",
        type=click.IntRange(0, 60_000),
        default=_PLAY.allowance_ms,
        help="Most that is given back for the network with each answer.",
    ),
    _match_option(
        "--grace-s",
        type=_Seconds(0, 86_400),
        default=30.0,
        help="How long a bot may be away before its matches go on without it, clocks running.",
    ),
    _match_option(
        "--illegal-retries",
        type=click.IntRange(0, 10),
        default=_PLAY.illegal_retries,
        help="How often a refused answer may be corrected in its turn.",
    ),
    _match_option(
        "--strikes",
        type=click.IntRange(0, 1000),
        default=_PLAY.strikes,
        help="Faults of one seat that lose it the match; 0: none do.",
    ),
    _match_option(
        "--policy",
        pairs=True,
        callback=_known_policies,
        metavar="KIND=EFFECT",
        help=f"What a kind of fault leads to once it cannot be corrected; repeat it for several. KIND: "
        f"{', '.join(FaultKind)}. EFFECT: {', '.join(POLICIES)}, for not_your_turn also none.  "
        "[default: substitute; not_your_turn: none]",
    ),
)

_limit_option = _section("Limits")
limit_options = _together(
    _limit_option(
        "--max-message-bytes",
        type=click.IntRange(1024, 1 << 26),
        default=_LIMITS.max_message_bytes,
        help="Size of one message of a bot.",
    ),
    _limit_option(
        "--max-answers",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.max_answers,
        help="Answers in one message.",
    ),
    _limit_option(
        "--max-matches",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.max_matches,
        help="Matches at once on one session.",
    ),
    _limit_option(
        "--max-sessions",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.max_sessions,
        help="Sessions under one name, which is to say of one bot's tokens.",
    ),
    _limit_option(
        "--max-streams",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.max_streams,
        help="Streams open in all.",
    ),
    _limit_option(
        "--max-connection-streams",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.max_connection_streams,
        help="Streams on one connection; the next wait until one of these ends.",
    ),
    _limit_option(
        "--messages-per-s",
        type=click.IntRange(1, 1 << 20),
        default=_LIMITS.messages_per_s,
        help="Messages that one bot may send each second for as long as it likes.",
    ),
    _limit_option(
        "--burst",
        type=click.IntRange(1, 1 << 30),
        default=_LIMITS.burst,
        help="Messages that it may send faster than that before it is cut off.",
    ),
    _limit_option(
        "--hello-s",
        type=_Seconds(0.1, 3600),
        default=_LIMITS.hello_s,
        help="Time that a new stream has for its Hello.",
    ),
)

_output_option = _section("Record and logs")
output_options = _together(
    _output_option(
        "--record",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the game record; without it nothing is kept.",
    ),
    _output_option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        help="Least severe operational log shown.",
    ),
    _output_option(
        "--log-format",
        type=click.Choice(("console", "json")),
        default="console",
        help="How operational logs look on standard error.",
    ),
)

_config_option = _section("Configuration")
config_options = _together(
    _config_option(
        "--config",
        type=_file(),
        is_eager=True,
        expose_value=False,
        callback=load,
        help="TOML file with settings; see above.",
    ),
    _config_option(
        "--show-config",
        is_flag=True,
        show_default=False,
        allow_from_autoenv=False,
        help="Check the settings, print them as such a file, and exit.",
    ),
)
