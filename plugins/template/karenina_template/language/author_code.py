"""Running code that a template's author wrote: whatever it raises becomes a TemplateError that names the line."""

from __future__ import annotations

import linecache
import traceback

from karenina_core.errors import TemplateError, one_line

AUTHORS = (Exception, SystemExit)
"""What counts as an error of the author's code."""
_LONGEST = 2000
"""Characters of a message: enough for the list of all names that a template can use."""


class author_code:
    """Run the author's code of `module`; `what` names in messages which part of the template it is.

    Raises TemplateError in place of any other exception. `exit()` counts as one; an interrupt does not. What every item
    calls has `except AUTHORS` and `blamed` instead: to enter and to leave this takes longer than most of that code.
    """

    __slots__ = ("_module", "_what")

    def __init__(self, what: str, module: str) -> None:
        self._what = what
        self._module = module

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, AUTHORS) and not isinstance(error, TemplateError):
            raise blamed(self._what, self._module, error) from error


def blamed(what: str, module: str, error: BaseException) -> TemplateError:
    """What is raised in place of an error of the author's code that is no TemplateError."""
    return TemplateError(f"{what} raised {one_line(error, _LONGEST)}{line_in(module, error)}")


def line_in(module: str, error: BaseException) -> str:
    """` (line 7: return self.x > 1)`: where the error passed through `module` last, or nothing where it did not."""
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == module:
            text = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
            found = f" (line {number}: {text})" if text else f" (line {number})"
    return found
