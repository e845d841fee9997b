"""`medialedger completion`: a script that completes commands, actions, options and their values in bash, zsh or fish. The script
contains all words, so no process is started during typing. argcomplete would start Python for each key, and shtab writes no script
for fish."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping

from api.cli.main import leaves, parser

Words = Mapping[str, Mapping[str, str]]
"""The words that may follow, with their help, by the words before them: `jobs list --format` is followed by values, `jobs list` by
options, `jobs` by actions, and the empty text by commands."""


def run(args: Namespace) -> int:
    print(SCRIPTS[args.shell](words()), end="")
    return 0


def words() -> Words:
    top = parser()
    table: dict[str, dict[str, str]] = {"": {}}
    for command, command_parser in leaves(top):
        table[""][command] = _first_line(command_parser.description or "")
        actions = dict(leaves(command_parser))
        if "" in actions:
            _add(table, command, command_parser)
            continue
        helps = {
            choice.dest: choice.help or ""
            for nested in command_parser._actions
            for choice in getattr(nested, "_choices_actions", ())
        }
        table[command] = {action: helps.get(action, "") for action in actions}
        for action, leaf in actions.items():
            _add(table, f"{command} {action}", leaf)
    return table


def _add(table: dict[str, dict[str, str]], path: str, leaf: ArgumentParser) -> None:
    """Add the options of a command, and the values of options that have choices."""
    table[path] = dict(_options(leaf))
    for action in leaf._actions:
        if action.choices is not None:
            table |= {f"{path} {option}": dict.fromkeys(map(str, action.choices), "") for option in action.option_strings}


def _options(leaf: ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield the long options and the choices of positional arguments, with their help."""
    for action in leaf._actions:
        if action.option_strings:
            yield action.option_strings[-1], _help(action)
        elif action.choices is not None:
            yield from ((str(choice), "") for choice in action.choices)


def _help(action: Action) -> str:
    text = action.help or ""
    return "" if text == "==SUPPRESS==" else text.replace("%(default)s", str(action.default))


def _first_line(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def _bash(table: Words) -> str:
    cases = "".join(f"    {_quote(path)}) words={_quote(' '.join(follow))} ;;\n" for path, follow in table.items())
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


def _zsh(table: Words) -> str:
    cases = ""
    for path, follow in table.items():
        described = " ".join(_quote(f"{word}:{_plain(help_text)}") for word, help_text in follow.items())
        cases += f"    {_quote(path)}) candidates=({described}) ;;\n"
    return f"""\
#compdef medialedger
# completion of medialedger for zsh: medialedger completion zsh > "${{fpath[1]}}/_medialedger"
_medialedger() {{
  local path_= word n=0 option=${{words[CURRENT-1]}}
  local -a candidates
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
  _describe -t commands medialedger candidates || _files
}}
if [[ $funcstack[1] == _medialedger ]]; then _medialedger "$@"; else compdef _medialedger medialedger; fi
"""


def _fish(table: Words) -> str:
    lines = ["# completion of medialedger for fish: medialedger completion fish > ~/.config/fish/completions/medialedger.fish"]
    for path, follow in table.items():
        before = path.split()
        if before and before[-1].startswith("-"):
            continue
        conditions = "".join(f"; and __fish_seen_subcommand_from {word}" for word in before)
        if len(before) == 1 and any(other.startswith(f"{path} ") for other in table):
            conditions += f"; and not __fish_seen_subcommand_from {' '.join(follow)}"
        condition = conditions.removeprefix("; and ") or "__fish_use_subcommand"
        if not all(word.startswith("--") for word in follow):
            lines.append(f"complete -c medialedger -f -n {_quote(condition)}")
        for word, help_text in follow.items():
            what = f"-l {word.removeprefix('--')}" if word.startswith("--") else f"-a {_quote(word)}"
            described = f" -d {_quote(_plain(help_text))}" if help_text else ""
            if word.startswith("--") and (values := table.get(f"{path} {word}")) is not None:
                what += f" -x -a {_quote(' '.join(values))}"
            lines.append(f"complete -c medialedger -n {_quote(condition)} {what}{described}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Remove the characters that a shell might interpret in a description."""
    return "".join(character for character in text if character not in "'`\"$:\\[]\n")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
