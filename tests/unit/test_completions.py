"""Shells complete commands, options and files: the scripts that are shipped, in the shells themselves."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from renewing import completion_for

from predsession.cli import main
from predsession.cli.completion import EXAMPLES, SHELLS, script_for

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
        text = BASH.format(script=script, words=words, function="_predsession")
    elif shell == "fish":
        text = f"source {script}; complete --do-complete '{line}'"
    else:
        pytest.skip("zsh completes at a terminal only: see ZSH")
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


def test_fish_says_an_options_help_once(tmp_path: Path) -> None:
    """Beside the option, and not beside each of the values that it may have."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    (tmp_path / "predsession.fish").write_text(script_for("fish"))
    lines = {}
    for line in ("--forma", "--format "):
        text = f"source predsession.fish; complete --do-complete 'predsession predict {line}'"
        command = ["fish", "--no-config", "-c", text]
        lines[line] = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True
        ).stdout.splitlines()
    [option] = lines["--forma"]
    assert option.startswith("--format\t")
    assert "coco" in lines["--format "]


def test_bash_knows_the_command(tmp_path: Path) -> None:
    """`complete -p` names it after the script is read as the help says: from a process substitution."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path / "predsession.bash"
    script.write_text(script_for("bash"))
    text = f"source <(cat {script}) && complete -p predsession"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert "-F _predsession predsession" in done.stdout


LINES = [line.strip() for line in EXAMPLES.splitlines() if line.startswith("  ")]
"""What the help tells one to type."""
ZSH = r"""
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'PS1=; stty cols 200; {before}'
zpty -w shell 'autoload -Uz compinit && compinit -D -u; {after}; print rea''dy'
zpty -r -m shell line '*ready*'
zpty -w -n shell $'predsession doc\t http://x --js\t\n'
zpty -r -m shell line '*--json*' && print found || print -r -- $line
zpty -d shell
"""


def run_in(shell: str, text: str, home: Path) -> str:
    """Run a text in a shell, with this predsession on its path and a home of its own; return what it says."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [shell, *({"zsh": ["-f"], "bash": ["--norc"]}.get(shell, [])), "-c", text]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False,
        env={"HOME": str(home), "PATH": path, "TERM": "xterm"},
    )  # fmt: skip
    assert "error" not in done.stderr.lower(), done
    return done.stdout.strip()


def test_the_lines_of_the_help_for_this_shell(tmp_path: Path) -> None:
    """Each, typed as it stands, has its shell complete afterwards."""
    for_bash, for_zsh, for_fish = LINES[:3]
    assert "-F _predsession predsession" in run_in("bash", f"{for_bash}; complete -p predsession", tmp_path)
    assert for_zsh.endswith("after compinit")
    typed = for_zsh.removesuffix("after compinit").strip()
    assert run_in("zsh", ZSH.format(before=":", after=typed), tmp_path).endswith("found")
    offers = run_in("fish", f"{for_fish}; complete --do-complete 'predsession doc'", tmp_path)
    assert offers.startswith("doctor\t")


def test_the_lines_of_the_help_for_all_shells_to_come(tmp_path: Path) -> None:
    """Each writes the script to where its shell looks for it by itself."""
    files = [line.partition(" > ~/")[2] for line in LINES[3:6]]
    assert all(files)
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True)
    run_in("bash", "\n".join(LINES[3:6]), tmp_path)
    for shell, file in zip(("bash", "zsh", "fish"), files, strict=True):
        assert (tmp_path / file).read_text() == script_for(shell)
    assert run_in("zsh", ZSH.format(before=LINES[6], after=":"), tmp_path).endswith("found")
    assert run_in("fish", "complete --do-complete 'predsession doc'", tmp_path).startswith("doctor\t")


TYPED = {
    r"predict w\ s/m": "[predict][w s/my.jpg]",
    'predict "w s/m': "[predict][w s/my.jpg]",
    "predict 'w s/m": "[predict][w s/my.jpg]",
    "predict w": "[predict][w s/]",
    "predict --format=co": "[predict][--format=coco]",
    "predict --out=ph": "[predict][--out=photo.jpg]",
    "predict --url http://host:80 ph": "[predict][--url][http://host:80][photo.jpg]",
    "predict --set a=b ph": "[predict][--set][a=b][photo.jpg]",
    "predict --set a=ph": "[predict][--set][a=ph]",
}
"""What is typed before a tab, and the arguments that come of it."""


def test_bash_at_a_terminal(tmp_path: Path) -> None:
    """Blanks, quotes, and what stands behind "=" and ":" are completed, and come out as they are meant."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    (tmp_path / "w s").mkdir()
    for name in ("w s/my.jpg", "photo.jpg", "cow"):
        (tmp_path / name).touch()
    (tmp_path / "completion.bash").write_text(script_for("bash"))
    (tmp_path / "rc").write_text(
        "PS1=; source completion.bash\npredsession() { printf '[%s]' \"$@\" >> told; echo >> told; }\n"
    )
    (tmp_path / "inputrc").write_text("set bell-style none\nset enable-bracketed-paste off\n")
    text = "".join(f"predsession {line}\t\n" for line in TYPED) + "exit\n"
    leader, follower = pty.openpty()
    try:
        with subprocess.Popen(
            ["bash", "--noprofile", "--rcfile", "rc", "-i"], cwd=tmp_path, start_new_session=True,
            stdin=follower, stdout=follower, stderr=follower,
            env={"PATH": os.environ["PATH"], "TERM": "dumb", "INPUTRC": "inputrc", "HOME": str(tmp_path)},
        ) as shell:  # fmt: skip
            os.write(leader, text.encode())
            shell.wait(timeout=60)
    finally:
        os.close(follower)
        os.close(leader)
    assert (tmp_path / "told").read_text().splitlines() == list(TYPED.values())
