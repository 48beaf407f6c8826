"""The declarations of `options` -> parameters of a command, as Typer needs them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from oaccdepth.options import Declared, declarations

Command = Callable[..., None]
Group = (
    type[Declared] | tuple[Any, ...]
)  # a class of options, or one with the names of some of its fields
Parameters = dict[str, inspect.Parameter]


def takes(**groups: Group) -> Callable[[Command], Command]:
    """Replace parameters of a command by the options from which they are built.

    `@takes(reading=ReadOptions)` gives the command every option that `ReadOptions` declares, and
    passes the object as `reading`. `(EstimateOptions, "weights", "device")` takes only these two.
    Needed because Typer reads a flat function signature and cannot nest options.
    """

    def decorate(command: Command) -> Command:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        options: dict[str, Parameters] = {}
        for name, group in groups.items():
            if own.pop(name, None) is None:
                raise TypeError(f"{command.__name__} has no parameter {name!r}")
            kind, *chosen = group if isinstance(group, tuple) else (group,)
            options[name] = _parameters(kind, chosen)

        @wraps(command)
        def wrapper(**values: Any) -> None:
            collected = {
                name: _collect(group, {option: values.pop(option) for option in options[name]})
                for name, group in groups.items()
            }
            command(**values, **collected)

        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for declared in (own, *options.values())
            for parameter in declared.values()
        ]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        del wrapper.__wrapped__  # otherwise Typer would find the old signature
        return wrapper

    return decorate


def _parameters(options: type[Declared], chosen: list[str]) -> Parameters:
    """One parameter for each declared field, or for the chosen ones."""
    hints, result = get_type_hints(options), {}
    for name, (flag, declared) in declarations(options).items():
        if chosen and name not in chosen:
            continue
        default = getattr(options, name)
        setting = typer.Option(
            f"{flag}/--no-{flag[2:]}" if default is True else flag,
            help=declared.help,
            metavar=declared.metavar,
            rich_help_panel=options.panel,
            show_default=default not in (None, "", ()),
        )
        kind = _typed(hints[name], declared.parse is not None)
        result[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if declared.parse or default == () else default,
            annotation=Annotated[kind, setting],
        )
    return result


def _typed(hint: Any, is_parsed: bool) -> Any:
    """The type for Typer: str if we parse the text ourselves, a list for repeatable options."""
    if is_parsed:
        return str | None
    return list[str] | None if hint == tuple[str, ...] else hint


def _collect(group: Group, values: dict[str, Any]) -> Declared:
    """Build the object from the given options; all others keep their defaults."""
    options = group[0] if isinstance(group, tuple) else group
    declared, typed = declarations(options), {}
    for name, value in values.items():
        flag, one = declared[name]
        if value is not None and one.parse is not None:
            value = one.parse(value, flag)
        if value is not None:
            typed[name] = tuple(value) if isinstance(value, list) else value
    result: Declared = options(**typed)
    return result
