"""Advice of the library, which names options of the command line, in the words of this package."""

from __future__ import annotations

import inspect
import re
from functools import cache

#: Words behind an option that are not its value.
_VERBS = "adds|allows|chooses|gives|has|is|keeps|lists|makes|names|reads|was"
#: An option with its value, or an option of a format.
_OPTION = re.compile(
    r"--([a-z][a-z-]*)"
    rf"(?:[ =](?!(?:{_VERBS})\b)('[^']*'|\"[^\"]*\"|[^\s,;:()]+))?"
    r"|(?<!\S)-O ([\w-]+)=([^\s,;:()]+)"
)
_COMMAND = re.compile(r"`?\bpackfs ([a-z-]+)((?: (?:[A-Z]+\b|/\S+))*)`?")
#: The same in other words; what follows "as in" is a command.
_EXAMPLE = re.compile(r", as in packfs [^;]*")
#: A value of an option in quotes, or a name.
_QUOTED = re.compile(r'(--[a-z-]+[ =]"[^"]*")|"[^"]*"')
_CLAUSE = re.compile(r"(; )")
#: Keyword arguments that are not named as the option is.
_OTHER_NAMES = {"allow_backing": "backing", "device": "devices", "subvol": "subvolume"}


@cache
def _keywords() -> dict[str, str]:
    """Returns the keyword arguments of all functions, and their types."""
    import packfs

    functions = (packfs.composefs, packfs.digest, packfs.check, packfs.merge, packfs.pack, packfs.open)
    parameters = [it for function in functions for it in inspect.signature(function).parameters.values()]
    return {it.name: str(it.annotation) for it in parameters if it.kind is it.KEYWORD_ONLY}


def _value(kind: str, text: str) -> str:
    text = text.strip("'\"")
    if kind.startswith("bytes"):
        return repr(text.encode())
    value = text if text.isupper() or re.fullmatch(r"\d+", text) else repr(text)
    if kind.startswith("Mapping") and "=" in text:
        key, _, of_key = text.partition("=")
        return f"{{{_value('', key)}: {_value('', of_key)}}}"
    return f"[{value}]" if kind.startswith("Sequence") else value


def _keyword(found: re.Match[str]) -> str:
    option, value, format_option, format_value = found.groups()
    if format_option:
        return f"format_options={{{format_option!r}: {format_value!r}}}"
    name, keywords = option.replace("-", "_"), _keywords()
    name = _OTHER_NAMES.get(name, name)
    if name.startswith("max_") and name not in keywords:
        return f'limits={{"{name}": {value if value and value.isdigit() else "N"}}}'
    behind = f" {value}" if value else ""
    if name.startswith("no_") and keywords.get(name[3:], "").startswith("bool"):
        return f"{name[3:]}=False{behind}"
    if name not in keywords:
        return found[0]
    if keywords[name].startswith("bool"):
        return f"{name}=True{behind}"
    return f"{name}={_value(keywords[name], value)}" if value else name


def _call(found: re.Match[str]) -> str:
    import packfs

    if found[1] not in packfs.__all__:
        return found[0]
    arguments = [it if it.isupper() else repr(it) for it in found[2].split()]
    return f"packfs.{found[1]}({', '.join(arguments)})"


def worded(text: str) -> str | None:
    """Returns a text with keyword arguments for options, and calls for commands.

    Parts that only help at the command line are left out; None if nothing is left.
    """
    names: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        names.append(found[0])
        return f"\0{len(names) - 1}\0"

    text = _QUOTED.sub(set_aside, text)
    kept = []
    for part in _CLAUSE.split(_EXAMPLE.sub("", text))[::2]:
        part = _OPTION.sub(_keyword, _COMMAND.sub(_call, part))
        if not re.search(r"--[a-z]|\bpackfs [a-z]", part):
            kept.append(part)
    return re.sub(r"\0(\d+)\0", lambda found: names[int(found[1])], "; ".join(kept)) or None
