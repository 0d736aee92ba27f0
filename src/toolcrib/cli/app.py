"""The commands, put together. Each one imports what it needs when it runs, so that `--help` stays fast."""

import typer

from toolcrib.cli import chat, describe, eval, pins, run, search, tokens, version


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        help="Give an agent thousands of tools for the price of three.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command("tokens")(tokens.tokens)
    app.command("search")(search.search)
    app.command("describe")(describe.describe)
    app.command("eval")(eval.evaluate)
    app.add_typer(pins.build_pins(), name="pins")
    app.command("chat")(chat.chat)
    app.command("run")(run.run)
    app.command("version")(version.version)
    return app
