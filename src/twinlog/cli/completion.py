"""`twinlog completion`: the script that teaches a shell to complete our commands.

The script calls `twinlog` back with a variable set; `app` answers there, from the same commands
and options that `--help` shows, so that nothing is listed twice.
"""

from __future__ import annotations

import click

from twinlog.cli import frame


@frame.command(
    example="""
    twinlog completion bash > ~/.local/share/bash-completion/completions/twinlog
    twinlog completion zsh > ~/.zfunc/_twinlog
    twinlog completion fish > ~/.config/fish/completions/twinlog.fish
    """
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(ctx: frame.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from twinlog.cli.app import COMPLETE_VARIABLE, PROGRAM, program

    completer = get_completion_class(shell)
    assert completer is not None  # click.Choice lets only these three through
    script = completer(program(), {}, PROGRAM, COMPLETE_VARIABLE).source()
    ctx.write(script, as_json={"shell": shell, "script": script})
