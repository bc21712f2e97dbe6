"""Write anew what tests keep as it is: the list of the public API, the completions of shells.

``scripts/renew`` runs it; tests/unit/test_public_api.py and tests/unit/test_completions.py compare.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import shtab
from public_api import API_FILE, describe_all

from predsession.cli import _parser
from predsession.cli.completion import SHELLS

COMPLETIONS = Path(__file__).parents[1] / "predsession" / "cli" / "completions"
FILES = re.compile(r"\b(FILE|PATH|SOURCE|STORE|INPUT|CLIP)\b|FILE\.")
"""In the name of what an argument takes: files are offered for it."""
WORDS_OF_BASH = r"""# Bash splits words at "=" and ":", and hands them over with their quotes and backslashes.
_predsession() {
  local -a words=()
  local i word joined=""
  for (( i = 0; i <= COMP_CWORD; i++ )); do
    word="${COMP_WORDS[i]}"
    if (( i == COMP_CWORD )); then
      [[ "$word" == "=" ]] && word=""
      case "$word" in
        [\"\']*) word="${word:1}" ;;
        *) word="${word//\\/}" ;;
      esac
      # the end of a word that began before a "=" or ":": its beginning is no word of its own
      if [[ -n "$joined" ]]; then unset "words[${#words[@]}-1]"; fi
      words+=("$word")
    elif [[ "$word" == "=" && "${COMP_WORDS[i-1]}" == --* ]]; then
      : # between an option and its value
    elif [[ "$word" =~ ^[=:]+$ && ${#words[@]} -gt 0 ]]; then
      words[${#words[@]}-1]+="$word"
      joined=1
      continue
    elif [[ -n "$joined" ]]; then
      words[${#words[@]}-1]+="$word"
    else
      words+=("$word")
    fi
    joined=""
  done
  local COMP_WORDS=("${words[@]}") COMP_CWORD=$(( ${#words[@]} - 1 ))
  _shtab_predsession "$@"
}

"""
FOLDERS = re.compile(r"\b(DIR|FOLDER)\b")


def completion_for(shell: str) -> str:
    """Return the script for a shell, as it should be."""
    parser = _parser()
    for each in _parsers(parser):
        for action in each._actions:
            _say_what_it_takes(action)
    return MENDED[shell](shtab.complete(parser, shell))


def _mended_bash(script: str) -> str:
    """Have words with blanks, and values behind an "=", completed."""
    script = _replaced(script, "compgen -f -- $1 ", 'compgen -f -- "$1" ')
    script = _replaced(script, "compgen -d -- $1 ", 'compgen -d -- "$1" ')
    last = "complete -o bashdefault -F _shtab_predsession predsession"
    return _replaced(script, last, WORDS_OF_BASH + last.replace("_shtab_predsession", "_predsession")) + "\n"


def _mended_fish(script: str) -> str:
    """Have an option's help beside the option, and not beside each of its values."""
    # What is declared last is asked first: the option with its help, then the values without.
    both = re.compile(r"^(complete .*) -xka (\".*?\") (-d '.*)$", re.MULTILINE)
    assert both.search(script), "shtab writes options with values in another way by now"
    return both.sub(r"\1 -xka \2\n\1 -x \3", script)


def _mended_zsh(script: str) -> str:
    """Have the script register itself also where it is read from a file, as `source` does."""
    return _replaced(script, "$zsh_eval_context[-1] == eval ]]", "$zsh_eval_context[-1] == (eval|file) ]]")


def _replaced(script: str, old: str, new: str) -> str:
    """Replace what must be there once: a later shtab may have mended it itself."""
    assert script.count(old) == 1, f"shtab writes something else than {old!r} by now"
    return script.replace(old, new)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                yield from _parsers(inner)


def _say_what_it_takes(action: argparse.Action) -> None:
    """Tell shtab which arguments are files and folders."""
    name = str(action.metavar or "")
    if FOLDERS.search(name):
        action.complete = shtab.DIRECTORY
    elif FILES.search(name) and ":" not in name:
        action.complete = shtab.FILE


MENDED = {"bash": _mended_bash, "fish": _mended_fish, "zsh": _mended_zsh}


def main() -> None:
    """Write all of it."""
    for shell in SHELLS:
        (COMPLETIONS / f"predsession.{shell}").write_text(completion_for(shell), "utf-8")
    API_FILE.write_text(describe_all(), "utf-8")


if __name__ == "__main__":
    main()
