"""``tressette bot``: one reference bot on one arena."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from tressette_bot.bots import REFERENCE_BOTS
from tressette_bot.client import run
from tressette_bot.errors import ClientError


def _known(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value in REFERENCE_BOTS:
        return value
    near = difflib.get_close_matches(value, REFERENCE_BOTS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(REFERENCE_BOTS)}"
    raise click.BadParameter(f"no reference bot {value!r}; {hint}")


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="The exit status is 0 when the arena ended the session by its own shutdown or the bot was stopped "
    "by SIGINT or SIGTERM, 2 for a wrong command line, 1 for anything else.",
)
@click.argument("name", callback=_known)
@click.option(
    "--address",
    envvar="TRESSETTE_ADDRESS",
    required=True,
    metavar="HOST:PORT",
    help="The arena. Plain text on loopback addresses, TLS elsewhere.  [env: TRESSETTE_ADDRESS]",
)
@click.option(
    "--token",
    envvar="TRESSETTE_TOKEN",
    default="",
    metavar="TEXT",
    help="Bot token; not needed where the arena runs without tokens. Better set in the environment, where "
    "other users do not see it.  [env: TRESSETTE_TOKEN]",
)
@click.option(
    "--label",
    envvar="TRESSETTE_BOT_NAME",
    metavar="TEXT",
    help="What the bot calls itself.  [env: TRESSETTE_BOT_NAME; default: NAME]",
)
@click.option(
    "--max-matches",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Matches at once.  [default: the bot's own, 64]",
)
@click.option(
    "--tls-root",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the root certificates (PEM) to trust; asks for TLS on loopback too.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The bot's own certificate (PEM), for arenas that ask for one. Needs --tls-key.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its private key (PEM), not encrypted. Needs --tls-cert.",
)
def bot(
    name: str,
    address: str,
    token: str,
    label: str | None,
    max_matches: int | None,
    tls_root: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Run the reference bot NAME until the arena ends the session.

    \b
    random       any legal card, all equally likely
    first_legal  the first legal card in deck order
    greedy       Tressette: counts cards, feeds its partner
    cautious     Traversone: ducks, gets rid of what is dangerous
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are needed together")
    player = REFERENCE_BOTS[name]()
    player.name = label or name
    player.max_matches = max_matches or player.max_matches
    try:
        run(player, address, token, tls_root=tls_root, tls_cert=tls_cert, tls_key=tls_key)
    except ClientError as error:
        raise click.ClickException(str(error)) from error
