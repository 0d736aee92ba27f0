"""The commands, put together. Each one imports what it needs when it runs, so that `--help` stays fast."""

import typer

<<<<<<< HEAD
from toolcrib.cli import chat, describe, eval, run, search, tokens, version
=======
from toolcrib.cli import describe, eval, pins, search, tokens, version
>>>>>>> main


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
<<<<<<< HEAD
    app.command("chat")(chat.chat)
    app.command("run")(run.run)
=======
    app.add_typer(pins.build_pins(), name="pins")
>>>>>>> main
    app.command("version")(version.version)
    return app
