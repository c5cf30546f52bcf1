"""The text of the completion scripts for bash, zsh and fish."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from asides.cli.completion import Argument, Entry

_HEAD = "# Completion of asides for {0}, made by `asides completion {0}`. Make it anew for a new version of asides.\n"
_DYNAMIC = ("model", "provider", "conversation", "mcp", "setting", "template")


def _quote(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _list_tops(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if " " not in entry.path]


def _list_words(entries: list[Entry]) -> list[tuple[str, str, tuple[str, ...]]]:
    """How the words of commands are completed: the command and the number of the word as a pattern of a `case`, the
    kind, and the choices.
    """
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for entry in entries:
        for number, word in enumerate(entry.words):
            if word.kind or word.choices:
                place = f"{shlex.quote(f'{entry.path} ')}*" if word.repeats else shlex.quote(f"{entry.path} {number}")
                found.append((place, word.kind or "", word.choices))
    return found


def _list_valued(entry: Entry) -> list[Argument]:
    return [argument for argument in entry.options if argument.kind is not None]


# --- bash -------------------------------------------------------------------------------------------------------------

# The words are taken from the line, since bash splits them at the colon of provider:model and at "=". It keeps what
# stands before the last colon, so candidates are given without it. Works with bash 3.2, which macOS has.
_BASH = r"""
_asides_candidates() {
    asides completion --candidates "$1" --beginning="$2" 2>/dev/null
}

# Names may hold anything: "$(…)" must not become a command on the line.
_asides_reply() {
    local word plain="${cur//\\/}"
    while IFS= read -r word; do
        [[ $word == "$plain"* ]] || continue
        case "$quote" in
            \") [[ $word == *[\"\$\`\\!]* ]] && continue ;;
            \') [[ $word == *\'* ]] && continue ;;
            *) printf -v word %q "$word" ;;
        esac
        COMPREPLY+=("$word")
    done
}

_asides_value() {
    local word
    case "$1" in
        file|folder|mcp)
            [[ $1 == mcp ]] && _asides_reply < <(_asides_candidates mcp "${cur//\\/}")
            if [[ ${#COMPREPLY[@]} -gt 0 ]]; then
                :
            elif type compopt >/dev/null 2>&1; then
                # Readline completes paths better than a script: with ~, and with quotes.
                [[ $1 == folder ]] && compopt -o dirnames || compopt -o default
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
            fi
            ;;
        ?*) _asides_reply < <(_asides_candidates "$1" "${cur//\\/}") ;;
    esac
    if [[ -n $2 ]]; then
        _asides_reply < <(printf '%s\n' $2)
    fi
}

_asides() {
    local line="${COMP_LINE:0:COMP_POINT}" cur prev path="" options valued subcommands kind choices word skip="" only=""
    local quote="" number=0 IFS=$' \t\n'
    local -a words
    COMPREPLY=()
    IFS=$' \t\n' read -r -a words <<< "$line"
    cur=""
    if [[ $line != *[[:space:]] ]]; then
        cur="${words[${#words[@]}-1]}"
        unset "words[${#words[@]}-1]"
    fi
    prev="${words[${#words[@]}-1]}"
    for word in "${words[@]:1}"; do
        if [[ $word == -- ]]; then
            return
        elif [[ -n $skip ]]; then
            skip=""
        elif [[ $word == -* ]]; then
            # `asides -m …` is short for `asides ask -m …`.
            path="${path:-ask}"
            _asides_describe "$path"
            [[ " $valued " == *" $word "* ]] && skip=yes
        elif [[ -z $path ]]; then
            path="$word"
        else
            _asides_describe "$path"
            if [[ $number -eq 0 && " $subcommands " == *" $word "* ]]; then
                path="$path $word"
            else
                number=$((number + 1))
            fi
        fi
    done
    _asides_describe "$path"
    if [[ $cur == --*=* ]]; then
        prev="${cur%%=*}"
        cur="${cur#*=}"
        only=yes
    fi
    if [[ $cur == [\"\']* ]]; then
        quote="${cur:0:1}"
        cur="${cur:1}"
    fi
    if [[ -n $skip || -n $only ]]; then
        _asides_describe_value "${path:-ask}" "$prev"
        _asides_value "$kind" "$choices"
    elif [[ $cur == -* ]]; then
        _asides_reply < <(printf '%s\n' $options)
    else
        _asides_describe_word "$path" "$number"
        _asides_value "$kind" "$choices"
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]]; then
        type compopt >/dev/null 2>&1 && compopt -o nospace
    fi
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        local index before="${cur%"${cur##*:}"}"
        for index in "${!COMPREPLY[@]}"; do
            COMPREPLY[index]="${COMPREPLY[index]#"$before"}"
        done
    fi
}

complete -F _asides asides
"""


def write_bash(entries: list[Entry]) -> str:
    """The script for bash."""
    lines = [_HEAD.format("bash"), "_asides_describe() {", '    options="" valued="" subcommands=""']
    lines += ['    case "$1" in']
    for entry in entries:
        options = _quote(name for argument in entry.options for name in argument.options)
        valued = _quote(name for argument in _list_valued(entry) for name in argument.options)
        inside = _quote(entry.subcommands)
        lines += [f"        {shlex.quote(entry.path)}) options={options} valued={valued} subcommands={inside} ;;"]
    short = (name for entry in entries if entry.path == "ask" for option in entry.options for name in option.options)
    bare = _quote(dict.fromkeys(["-h", "--help", "-V", "--version", *short]))
    lines += [f"        '') options={bare} ;;", "    esac", "}", ""]
    lines += ["_asides_describe_value() {", '    kind="" choices=""', '    case "$1 $2" in']
    for entry in entries:
        for argument in _list_valued(entry):
            if argument.kind or argument.choices:
                cases = "|".join(shlex.quote(f"{entry.path} {name}") for name in argument.options)
                lines += [f"        {cases}) kind={argument.kind or ''} choices={_quote(argument.choices)} ;;"]
    lines += ["    esac", "}", "", "_asides_describe_word() {", '    kind="" choices=""', '    case "$1 $2" in']
    lines += [
        f"        {place}) kind={kind} choices={_quote(choices)} ;;" for place, kind, choices in _list_words(entries)
    ]
    lines += [f"        ' 0') choices={_quote(entry.path for entry in _list_tops(entries))} ;;", "    esac", "}"]
    return "\n".join(lines) + "\n" + _BASH


# --- zsh --------------------------------------------------------------------------------------------------------------

_ZSH = r"""
_asides_value() {
    local -a found
    case $1 in
        file) _files ;;
        folder) _files -/ ;;
        mcp)
            found=("${(@f)$(asides completion --candidates mcp --beginning="$PREFIX" 2>/dev/null)}")
            compadd -- ${found:#}
            _files
            ;;
        ?*)
            found=("${(@f)$(asides completion --candidates $1 --beginning="$PREFIX" 2>/dev/null)}")
            found=(${found:#})
            compadd -S '' -- ${(M)found:#*:}
            compadd -- ${found:#*:}
            ;;
    esac
    [[ -n $2 ]] && compadd -- ${=2}
    return 0
}

_asides() {
    local asides_path='' word skip='' prev
    local valued subcommands kind choices
    local -a described
    integer index number=0
    for (( index = 2; index < CURRENT; index++ )); do
        word=${words[index]}
        if [[ $word == -- ]]; then
            return 1
        elif [[ -n $skip ]]; then
            skip=''
        elif [[ $word == -* ]]; then
            asides_path=${asides_path:-ask}
            _asides_describe "$asides_path"
            [[ " $valued " == *" $word "* ]] && skip=yes
        elif [[ -z $asides_path ]]; then
            asides_path=$word
        else
            _asides_describe "$asides_path"
            if [[ $number -eq 0 && " $subcommands " == *" $word "* ]]; then
                asides_path="$asides_path $word"
            else
                (( number += 1 ))
            fi
        fi
    done
    prev=${words[CURRENT-1]}
    _asides_describe "$asides_path"
    if [[ -n $skip ]]; then
        _asides_describe_value "$asides_path" "$prev"
        _asides_value "$kind" "$choices"
    elif [[ $PREFIX == --*=* ]]; then
        prev=${PREFIX%%=*}
        compset -P '*='
        _asides_describe_value "${asides_path:-ask}" "$prev"
        _asides_value "$kind" "$choices"
    elif [[ $PREFIX == -* ]]; then
        _asides_describe "${asides_path:-ask}"
        _describe -o option described
    else
        _asides_describe_word "$asides_path" "$number"
        if [[ -z $asides_path ]]; then
            _describe command described
        else
            _asides_value "$kind" "$choices"
        fi
    fi
}

if [[ $funcstack[1] == _asides ]]; then
    _asides "$@"
elif (( $+functions[compdef] )); then
    compdef _asides asides
fi
"""


def write_zsh(entries: list[Entry]) -> str:
    """The script for zsh: for `eval`, or as a file `_asides` in a folder of $fpath."""
    lines = ["#compdef asides", _HEAD.format("zsh"), "_asides_describe() {"]
    lines += ["    valued='' subcommands=''", "    described=()", "    case $1 in"]
    for entry in entries:
        valued = _quote(name for argument in _list_valued(entry) for name in argument.options)
        shown = " ".join(_describe_zsh(name, argument.help) for argument in entry.options for name in argument.options)
        lines += [f"        {shlex.quote(entry.path)})"]
        lines += [f"            valued={valued} subcommands={_quote(entry.subcommands)}"]
        lines += [f"            described=({shown})", "            ;;"]
    commands = " ".join(_describe_zsh(entry.path, entry.summary) for entry in _list_tops(entries))
    lines += ["        '')", f"            described=({commands})", "            ;;", "    esac", "}", ""]
    lines += ["_asides_describe_value() {", "    kind='' choices=''", '    case "$1 $2" in']
    for entry in entries:
        for argument in _list_valued(entry):
            if argument.kind or argument.choices:
                cases = "|".join(shlex.quote(f"{entry.path} {name}") for name in argument.options)
                lines += [f"        {cases}) kind='{argument.kind or ''}' choices={_quote(argument.choices)} ;;"]
    lines += ["    esac", "}", "", "_asides_describe_word() {", "    kind='' choices=''", '    case "$1 $2" in']
    lines += [
        f"        {place}) kind='{kind}' choices={_quote(choices)} ;;" for place, kind, choices in _list_words(entries)
    ]
    lines += ["    esac", "}"]
    return "\n".join(lines) + "\n" + _ZSH


def _describe_zsh(name: str, text: str) -> str:
    return shlex.quote(f"{name.replace(':', chr(92) + ':')}:{text}")


# --- fish -------------------------------------------------------------------------------------------------------------

_FISH = r"""
# The words so far, without options and their values.
function __asides_words
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
        else if string match -q -- '-*' $word
            contains -- $word $__asides_valued; and set skip yes
        else
            printf '%s\n' $word
        end
    end
end

# Whether the words so far begin with this command; without one, whether there are none.
function __asides_at
    set -l words (__asides_words)
    test (count $words) -ge (count $argv); or return 1
    test (count $argv) -gt 0; or test (count $words) -eq 0; or return 1
    for index in (seq (count $argv))
        test "$words[$index]" = "$argv[$index]"; or return 1
    end
end

# Whether it is a bare question, which has the options of ask: the first word is an option.
function __asides_asks
    set -l words (commandline -opc)[2..-1] (commandline -ct)
    string match -q -- '-*' "$words[1]"
end

# Whether so many words follow this command; with "-ge", at least so many.
function __asides_follow
    __asides_at $argv[3..-1]; and test (count (__asides_words)) $argv[1] (math (count $argv) - 2 + $argv[2])
end

function __asides_candidates
    set -l beginning (commandline -ct | string replace -r '^--[a-z-]+=' '')
    asides completion --candidates $argv[1] --beginning="$beginning" 2>/dev/null
end

complete -c asides -f
complete -c asides -n __asides_at -s h -l help -d 'show the help'
complete -c asides -n __asides_at -s V -l version -d 'show the version'
"""


def write_fish(entries: list[Entry]) -> str:
    """The script for fish."""
    valued = {name for entry in entries for argument in _list_valued(entry) for name in argument.options}
    lines = [_HEAD.format("fish"), f"set -g __asides_valued {' '.join(sorted(valued))}", _FISH]
    lines += [
        f"complete -c asides -n __asides_at -a {_fish(entry.path)} -d {_fish(entry.summary)}"
        for entry in _list_tops(entries)
    ]
    summaries = {entry.path: entry.summary for entry in entries}
    for entry in entries:
        condition = _fish(f"__asides_at {entry.path}")
        for name in entry.subcommands:
            about = _fish(summaries.get(f"{entry.path} {name}", ""))
            first = _fish(f"__asides_follow -eq 0 {entry.path}")
            lines.append(f"complete -c asides -n {first} -a {_fish(name)} -d {about}")
        for argument in entry.options:
            written = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in argument.options
            )
            value = _complete_fish(argument.kind, argument.choices)
            is_bare = entry.path == "ask" and "--help" not in argument.options
            where = _fish(f"__asides_at {entry.path}; or __asides_asks") if is_bare else condition
            lines.append(f"complete -c asides -n {where} {written}{value} -d {_fish(argument.help)}")
        for number, word in enumerate(entry.words):
            if (word.kind or word.choices) and not entry.subcommands:
                place = _fish(f"__asides_follow {'-ge' if word.repeats else '-eq'} {number} {entry.path}")
                value = _complete_fish(word.kind, word.choices).replace(" -r", "").replace(" -x", "")
                lines.append(f"complete -c asides -n {place}{value}")
    return "\n".join(lines) + "\n"


def _complete_fish(kind: str | None, choices: tuple[str, ...]) -> str:
    """How the value of an option is completed."""
    if kind is None:
        return ""
    if kind in ("file", "folder"):
        return " -r -F"
    values = f" -a {_fish(' '.join(choices))}" if choices else ""
    if kind in _DYNAMIC:
        values += f" -a {_fish(f'(__asides_candidates {kind})')}"
    return f" -r -F{values}" if kind == "mcp" else f" -x{values}"


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
