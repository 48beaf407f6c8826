"""Groups of options that several commands take, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

Command = Callable[..., None]


def takes(**groups: Callable[..., Any]) -> Callable[[Command], Command]:
    """Replace parameters of a command by the options of functions that make their values.

    `@takes(reading=read_options)` gives the command the options that `read_options` declares, and
    its parameter `reading` what that function returns. Typer builds its interface from a function's
    signature and cannot nest one in another; twenty options in nine commands would be declared
    over and over otherwise.
    """

    def decorate(command: Command) -> Command:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        for name in groups:
            if name not in own:
                raise TypeError(f"{command.__name__} has no parameter {name!r}")
            del own[name]
        options = {
            name: dict(inspect.signature(collect, eval_str=True).parameters)
            for name, collect in groups.items()
        }

        @wraps(command)
        def wrapper(**values: Any) -> None:
            collected = {
                name: collect(**{option: values.pop(option) for option in options[name]})
                for name, collect in groups.items()
            }
            command(**values, **collected)

        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for declared in (own, *options.values())
            for parameter in declared.values()
        ]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        del wrapper.__wrapped__  # or the old signature is found again
        return wrapper

    return decorate
