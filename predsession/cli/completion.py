"""``predsession completion``: a script with which a shell completes commands and options.

The scripts are made by shtab, and mended, when the command line changes (``scripts/renew``). They are shipped
as they are: the core needs no library for them.
"""

from __future__ import annotations

import argparse
from importlib import resources

from predsession.cli.codes import OK, USAGE
from predsession.cli.commands import add_command

SHELLS = ("bash", "fish", "zsh")
EXAMPLES = """\
for this shell:
  source <(predsession completion bash)
  source <(predsession completion zsh)       after compinit
  predsession completion fish | source

for all to come, in folders that there must be:
  predsession completion bash > ~/.local/share/bash-completion/completions/predsession
  predsession completion zsh > ~/.zfunc/_predsession
  predsession completion fish > ~/.config/fish/completions/predsession.fish

Bash wants its package bash-completion, zsh this line before compinit in ~/.zshrc:
  fpath+=~/.zfunc
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    completion = add_command(
        commands,
        "completion",
        "print a script for a shell, which completes commands and options",
        notes=EXAMPLES,
        codes=(OK, USAGE),
    )
    completion.add_argument("shell", choices=SHELLS, help="which")
    completion.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    print(script_for(args.shell), end="")
    return OK


def script_for(shell: str) -> str:
    """Return the script that is shipped for a shell."""
    return (resources.files("predsession.cli") / "completions" / f"predsession.{shell}").read_text("utf-8")
