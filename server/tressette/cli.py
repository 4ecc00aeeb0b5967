"""``tressette``: the one command. Each subcommand is imported only when it is used, so that ``tressette
rules`` needs no gRPC and ``tressette tournament status`` no numpy."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

_Entry = tuple[str, str, str, str]
"""Module, attribute, short help shown in the list, extra that it needs."""

_COMMANDS: Final[dict[str, _Entry]] = {
    "serve": ("tressette.commands.serve", "serve", "Run an arena that bots connect to.", ""),
    "token": ("tressette.commands.token", "token", "Make, list and revoke the tokens of bots.", ""),
    "bot": ("tressette_bot.cli", "bot", "Run one of the reference bots.", ""),
    "rules": ("tressette.commands.rules", "rules", "List and show presets and their options.", ""),
    "replay": ("tressette.commands.replay", "replay", "Show a recorded game trick by trick.", ""),
    "reveal": ("tressette.commands.reveal", "reveal", "Fetch and check revealed decks.", ""),
    "tournament": ("tressette.cli", "tournament", "Run rated tournaments.", ""),
    "verify": ("tressette_tournament.verify", "verify_command", "Check the record of a run.", "tournament"),
    "export": ("tressette_tournament.export", "export_command", "Write a record as tables.", ""),
    "ratings": ("tressette_tournament.cli", "ratings", "Rate the bots from the logs of a run.", "tournament"),
}
_TOURNAMENT: Final[dict[str, _Entry]] = {
    "check": ("tressette_tournament.cli", "check", "Try the bots before a long run.", "tournament"),
    "run": ("tressette_tournament.cli", "run", "Play a tournament and rate its bots.", "tournament"),
    "resume": ("tressette_tournament.cli", "resume", "Go on with a run.", "tournament"),
    "status": ("tressette_tournament.observe", "status_", "Show how a run stands.", "tournament"),
    "stop": ("tressette_tournament.observe", "stop", "Stop a run.", "tournament"),
}


class _Lazy(click.Group):
    """A group whose commands are in modules of their own. entries: by name, in the order of the list."""

    def __init__(self, *args: Any, entries: Mapping[str, _Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._entries:
            return None
        module, attribute, _, extra = self._entries[cmd_name]
        try:
            command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if not extra or (error.name or "").startswith("tressette"):
                raise
            if ctx.resilient_parsing:  # a shell completes a line: there is nobody to tell
                return None
            raise click.ClickException(
                f"{cmd_name} needs the package {error.name}: install this distribution with its extra, "
                f"pip install '.[{extra}]' in the project's folder"
            ) from error
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of the commands without importing them."""
        found = [
            CompletionItem(name, help=entry[2])
            for name, entry in self._entries.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in self._entries.items()])


@click.group(cls=_Lazy, entries=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tressette-arena", prog_name="tressette")
def main() -> None:
    """Bot competitions for Tressette and Traversone."""


@click.group(cls=_Lazy, entries=_TOURNAMENT)
def tournament() -> None:
    """Run rated tournaments between bots on duplicate deals."""
