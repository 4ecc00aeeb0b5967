"""``tressette token``: make, list and revoke the tokens by which an arena knows its bots."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tressette.wire.tokens import TokenError, new_token, read_tokens, revoke_tokens

_HELP = {"help_option_names": ["-h", "--help"]}


def _file_option(must_exist: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--file",
        type=click.Path(exists=must_exist, dir_okay=False, path_type=Path),
        envvar="TRESSETTE_SERVE_TOKENS",
        default="tressette-tokens.jsonl",
        show_default=True,
        help="The token file, the one that `tressette serve --tokens` reads.  [env: TRESSETTE_SERVE_TOKENS]",
    )


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What goes wrong becomes one line and status 1."""
    try:
        yield
    except (TokenError, OSError) as error:
        raise click.ClickException(str(error)) from None


@click.group(context_settings=_HELP)
def token() -> None:
    """Make, list and revoke bot tokens.

    An arena that is started with --tokens lets in only bots that show a token of that file; the name of the
    token is the name that the bot plays under. The file holds no token, only what is needed to recognize one.
    A running arena follows every change: a new token is good at once, and the sessions of a revoked one end
    within a few seconds.
    """


@token.command(context_settings=_HELP)
@click.argument("name")
@_file_option(must_exist=False)
def new(name: str, file: Path) -> None:
    """Make a token for the bot NAME and print it.

    It is printed this once and cannot be had again. NAME is 1 to 64 letters, digits, '.', '_' or '-'. It may
    have tokens already; they stay good, so that a bot can change from one to the other without a pause. The
    file is made if it is missing, readable for its owner only.
    """
    with _refusals():
        text, made = new_token(file, name)
    click.echo(text)
    click.echo(f"token {made.id} of {name}, added to {file}; it is not shown again", err=True)


@token.command("list", context_settings=_HELP)
@_file_option(must_exist=True)
def list_tokens(file: Path) -> None:
    """List the tokens by id, name and time of creation (UTC), the oldest first."""
    with _refusals():
        tokens = read_tokens(file)
    width = max((len(one.name) for one in tokens), default=4)
    click.echo(f"{'ID':12}  {'NAME':{width}}  CREATED")
    for one in tokens:
        click.echo(f"{one.id}  {one.name:{width}}  {one.created}")


@token.command(context_settings=_HELP)
@click.argument("which", metavar="NAME|ID")
@_file_option(must_exist=True)
def revoke(which: str, file: Path) -> None:
    """Revoke one token by its ID, or all tokens of NAME.

    Sessions that came in with them end within a few seconds, with the reason UNAUTHENTICATED, and are gone
    for good; matches under way go on without the bot, as the fault policy says.
    """
    with _refusals():
        for one in revoke_tokens(file, which):
            click.echo(f"revoked {one.id} of {one.name}")
