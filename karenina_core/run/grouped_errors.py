"""What several items met at once, as one error."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import one_line

__all__ = ["one_of"]


def one_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of errors of one type, with the others as notes, however many items happened to meet it; else all.

    A full disk or a broken `on_result` fails each item that is at work at that moment: how many there are is chance.
    """
    first, *others = _leaves(group)
    if any(type(other) is not type(first) for other in others):
        return group.derive([first, *others]).with_traceback(group.__traceback__)
    for told in dict.fromkeys(one_line(other) for other in others):
        if told != one_line(first):
            first.add_note(f"and in another item: {told}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
