"""Running code that a template's author wrote: whatever it raises becomes a TemplateError that names the line."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import TemplateError, one_line

__all__ = ["author_code", "line_in"]

_LONGEST = 2000
"""Characters of a message: enough for the list of all names that a template can use."""


@contextmanager
def author_code(what: str, module: str) -> Iterator[None]:
    """Run the author's code of `module`; `what` says in messages which part of the template it is.

    Raises TemplateError in place of any other exception. `exit()` counts as one; an interrupt does not.
    """
    try:
        yield
    except TemplateError:
        raise
    except (Exception, SystemExit) as error:
        raise TemplateError(f"{what} raised {one_line(error, _LONGEST)}{line_in(module, error)}") from error


def line_in(module: str, error: BaseException) -> str:
    """` (line 7: return self.x > 1)`: where the error passed through `module` last, or nothing where it did not."""
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == module:
            text = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
            found = f" (line {number}: {text})" if text else f" (line {number})"
    return found
