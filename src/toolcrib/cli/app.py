"""The commands, put together. Each one imports what it needs when it runs, so that `--help` stays fast."""

import typer

from toolcrib.cli import (
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
    app.command("audit")(audit.build_command(audit.start_servers))
    app.command("tokens")(tokens.tokens)
    app.command("search")(search.search)
    app.command("describe")(describe.describe)
    app.command("eval")(eval.evaluate)
    app.add_typer(pins.build_pins(), name="pins")
    app.command("call")(call.call)
    app.command("serve")(serve.serve)
    app.add_typer(token.build_app(), name="token")
    app.command("install")(install.install)
    app.command("uninstall")(uninstall.uninstall)
    app.add_typer(config.build_app(), name="config")
    app.command("doctor")(doctor.doctor)
    app.command("learn")(learn.learn)
    app.command("chat")(chat.chat)
    app.command("run")(run.run)
    app.command("version")(version.version)
    return app
