"""The commands, put together. Each one imports what it needs when it runs, so that `--help` stays fast."""

import inspect
from typing import Annotated

import typer

from toolcrib.cli import (
    approvals,
    audit,
    call,
    chat,
    config,
    describe,
    doctor,
    eval,
    install,
    learn,
    pins,
    run,
    search,
    serve,
    token,
    tokens,
    uninstall,
    version,
)


def build_app() -> typer.Typer:
    """The application with all its commands."""
    app = typer.Typer(
        help="Give an agent thousands of tools for the price of three.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    app.command("audit", short_help="What the servers of your clients cost per turn.")(
        audit.build_command(audit.start_servers)
    )
    app.command("tokens", short_help="What a file of tool definitions costs per turn.")(tokens.tokens)
    app.command("search", short_help="What a model would find, and why.")(search.search)
    app.command("describe", short_help="Description and schema of one tool.")(describe.describe)
    app.command("eval", short_help="How well tools are found, and when it pays.")(eval.evaluate)
    app.add_typer(pins.build_pins(), name="pins")
    app.command("call", short_help="Run one tool.")(call.call)
    app.command("serve", short_help="The gateway, on stdio or over HTTP.")(serve.serve)
    app.add_typer(token.build_app(), name="token")
    app.add_typer(approvals.build_app(), name="approvals")
    app.command("install", short_help="The gateway in front of a client's servers.")(install.install)
    app.command("uninstall", short_help="Every byte of it back as it was.")(uninstall.uninstall)
    app.add_typer(config.build_app(), name="config")
    app.command("doctor", short_help="What works, what does not, what to do.")(doctor.doctor)
    app.command("learn", short_help="Aliases proposed from what was searched.")(learn.learn)
    app.command("chat", short_help="The reference agent in the terminal.")(chat.chat)
    app.command("run", short_help="One unattended turn, narrow and recorded.")(run.run)
    app.command("version", short_help="The version.")(version.version)
    _keep_examples(app)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        version.version()
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Options of the command itself, without any of its commands."""


def _keep_examples(app: typer.Typer) -> None:
    """Puts every example on a line of its own that is not wrapped: what is shown can be copied."""
    for command in app.registered_commands:
        words = inspect.cleandoc((command.callback and command.callback.__doc__) or "")
        command.help = words.replace("\n\nExample: ", "\n\n\b\nExample:\n  ")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _keep_examples(group.typer_instance)
