"""Shells complete commands, options and files: the scripts that are shipped, in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from renewing import completion_for

from predsession.cli import main
from predsession.cli.completion import SHELLS, script_for

BASH = r"""
source {script}
complete -p predsession >&2
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
{function} predsession "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}" 2>/dev/null
printf '%s\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_are_what_the_command_line_says(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is shipped, and printed, is what shtab makes of the parser; `scripts/renew` writes it anew."""
    assert script_for(shell) == completion_for(shell), "the command line has changed: run scripts/renew"
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == script_for(shell)


def offered(shell: str, line: str, place: Path) -> set[str]:
    """Return what a shell offers for the last word of a line; its own words after a tab are no part of it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = place / f"predsession.{shell}"
    script.write_text(script_for(shell))
    if shell == "bash":
        words = " ".join(f"'{word}'" for word in line.split(" "))
        text = BASH.format(script=script, words=words, function="_shtab_predsession")
    elif shell == "fish":
        text = f"source {script}; complete --do-complete '{line}'"
    else:
        pytest.skip("zsh completes at a terminal only: see test_zsh_at_a_terminal")
    command = [shell, *(["--norc", "-c"] if shell == "bash" else ["--no-config", "-c"]), text]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=60, check=True)
    return {each.split("\t")[0] for each in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_what_is_offered(shell: str, tmp_path: Path) -> None:
    """Commands, commands of commands, options, choices, files where a file is wanted."""
    (tmp_path / "photo.jpg").touch()
    commands = offered(shell, "predsession ", tmp_path)
    assert {"predict", "serve", "info", "jobs", "edge", "tensor", "stream", "doctor"} <= commands
    assert offered(shell, "predsession doc", tmp_path) == {"doctor"}
    assert {"infer", "profile"} <= offered(shell, "predsession tensor ", tmp_path)
    assert {"--url", "--json"} <= offered(shell, "predsession predict --", tmp_path)
    assert "--url" not in offered(shell, "predsession doctor --", tmp_path)
    assert offered(shell, "predsession completion ", tmp_path) >= {"bash", "fish", "zsh"}
    assert {"yield", "skip", "raise"} <= offered(shell, "predsession predict --on-error ", tmp_path)
    assert "photo.jpg" in offered(shell, "predsession predict --out ph", tmp_path)
    assert "photo.jpg" in offered(shell, "predsession predict ph", tmp_path)


def test_bash_knows_the_command(tmp_path: Path) -> None:
    """`complete -p` names it after the script is read as the help says: from a process substitution."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "predsession.bash"
    script.write_text(script_for("bash"))
    text = f"source <(cat {script}) && complete -p predsession"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert "_shtab_predsession predsession" in done.stdout


def test_zsh_at_a_terminal(tmp_path: Path) -> None:
    """Zsh completes only at a terminal: its own pseudo-terminal, with a tab in it."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (tmp_path / "_predsession").write_text(script_for("zsh"))
    text = f"""
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'PS1=; fpath=({tmp_path} $fpath); stty cols 200'
zpty -w shell 'autoload -Uz compinit && compinit -D -u; print rea''dy'
zpty -r -m shell line '*ready*'
zpty -w -n shell $'predsession doc\\t http://x --js\\t\\n'
zpty -r -m shell line '*--json*' && print found
zpty -d shell
"""
    done = subprocess.run(["zsh", "-f", "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip().endswith("found"), done
