"""`medialedger completion`: a script that completes commands, actions, options and their values in bash, zsh or fish.

The script holds all words, so nothing is started while somebody types. argcomplete would start Python for each key, and shtab
writes no script for fish."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping

from api.cli.main import leaves, parser

Words = Mapping[str, Mapping[str, str]]
"""What may follow, by the words before: `jobs list --format` has values, `jobs list` has options, `jobs` has actions, the empty
text has commands; each with its help."""


def run(args: Namespace) -> int:
    print(SCRIPTS[args.shell](words()), end="")
    return 0


def words() -> Words:
    top = parser()
    found: dict[str, dict[str, str]] = {"": {}}
    for command, one in leaves(top):
        found[""][command] = _first_line(one.description or "")
        actions = dict(leaves(one))
        if "" in actions:
            _add(found, command, one)
            continue
        told = {choice.dest: choice.help or "" for nested in one._actions for choice in getattr(nested, "_choices_actions", ())}
        found[command] = {action: told.get(action, "") for action in actions}
        for action, leaf in actions.items():
            _add(found, f"{command} {action}", leaf)
    return found


def _add(found: dict[str, dict[str, str]], path: str, leaf: ArgumentParser) -> None:
    """The options of a command, and the values of those that have a choice."""
    found[path] = dict(_options(leaf))
    for action in leaf._actions:
        if action.choices is not None:
            found |= {f"{path} {option}": dict.fromkeys(map(str, action.choices), "") for option in action.option_strings}


def _options(one: ArgumentParser) -> Iterator[tuple[str, str]]:
    """Long options, and the choices of arguments."""
    for action in one._actions:
        if action.option_strings:
            yield action.option_strings[-1], _help(action)
        elif action.choices is not None:
            yield from ((str(choice), "") for choice in action.choices)


def _help(action: Action) -> str:
    told = action.help or ""
    return "" if told == "==SUPPRESS==" else told.replace("%(default)s", str(action.default))


def _first_line(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _bash(found: Words) -> str:
    cases = "".join(f"    {_quoted(path)}) words={_quoted(' '.join(follow))} ;;\n" for path, follow in found.items())
    return f"""\
# completion of medialedger for bash: source <(medialedger completion bash)
_medialedger() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path= word words= n=0 option=${{COMP_WORDS[COMP_CWORD-1]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -* || $n -ge 2 ]] && continue
    path+="${{path:+ }}$word"; n=$((n + 1))
  done
  [[ $option == -* ]] && path+=" $option"
  while :; do
    case $path in
{cases}    *) if [[ $path == *' '* ]]; then path=${{path% *}}; continue; fi ;;
    esac
    break
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${{#COMPREPLY[@]}} -eq 0 && $current != -* ]] && COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _medialedger medialedger
"""


def _zsh(found: Words) -> str:
    cases = ""
    for path, follow in found.items():
        described = " ".join(_quoted(f"{word}:{_plain(told)}") for word, told in follow.items())
        cases += f"    {_quoted(path)}) found=({described}) ;;\n"
    return f"""\
#compdef medialedger
# completion of medialedger for zsh: medialedger completion zsh > "${{fpath[1]}}/_medialedger"
_medialedger() {{
  local path_= word n=0 option=${{words[CURRENT-1]}}
  local -a found
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word == -* || $n -ge 2 ]] && continue
    path_+="${{path_:+ }}$word"; n=$((n + 1))
  done
  [[ $option == -* ]] && path_+=" $option"
  while :; do
    case $path_ in
{cases}    *) if [[ $path_ == *' '* ]]; then path_=${{path_% *}}; continue; fi ;;
    esac
    break
  done
  _describe -t commands medialedger found || _files
}}
if [[ $funcstack[1] == _medialedger ]]; then _medialedger "$@"; else compdef _medialedger medialedger; fi
"""


def _fish(found: Words) -> str:
    lines = ["# completion of medialedger for fish: medialedger completion fish > ~/.config/fish/completions/medialedger.fish"]
    for path, follow in found.items():
        before = path.split()
        if before and before[-1].startswith("-"):
            continue
        seen = "".join(f"; and __fish_seen_subcommand_from {word}" for word in before)
        if len(before) == 1 and any(other.startswith(f"{path} ") for other in found):
            seen += f"; and not __fish_seen_subcommand_from {' '.join(follow)}"
        condition = seen.removeprefix("; and ") or "__fish_use_subcommand"
        if not all(word.startswith("--") for word in follow):
            lines.append(f"complete -c medialedger -f -n {_quoted(condition)}")
        for word, told in follow.items():
            what = f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-a {_quoted(word)}"
            described = f" -d {_quoted(_plain(told))}" if told else ""
            if word.startswith("--") and (values := found.get(f"{path} {word}")) is not None:
                what += f" -x -a {_quoted(' '.join(values))}"
            lines.append(f"complete -c medialedger -n {_quoted(condition)} {what}{described}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Without what a shell might read in a description."""
    return "".join(one for one in text if one not in "'`\"$:\\[]\n")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
