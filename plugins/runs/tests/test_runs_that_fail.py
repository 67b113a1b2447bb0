"""What a caller sees of a run that ends with an error: the same error, however many items met it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.execute.runner import Destination, execute

from karenina_core import VerificationResult, hookimpl

Make = Callable[..., Any]


class Together:
    """An executor whose jobs all fail, at the same time and with these errors."""

    name = "together"

    def __init__(self, *errors: BaseException, nested: bool = False) -> None:
        self.errors, self.nested = errors, nested

    @hookimpl
    def karenina_register_executors(self, registry: Any) -> None:
        made = self

        class Executor:
            name = "together"

            async def execute(self, jobs: Any, work: Any, *, concurrency: int) -> None:
                async with asyncio.TaskGroup() as group:
                    for error in made.errors:
                        group.create_task(made.failing(error))

        registry.add(Executor)

    async def failing(self, error: BaseException) -> None:
        if self.nested:
            raise BaseExceptionGroup("inside", [error])
        raise error


def ended(world: Make, *errors: BaseException, nested: bool = False) -> BaseException:
    here = world(Together(*errors, nested=nested))
    with pytest.raises(BaseException) as caught:
        here.run(here.config(executor="together"))
    return caught.value


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_errors_of_one_type_are_raised_as_the_first_of_them(world: Make, count: int, nested: bool) -> None:
    errors = [OSError(errno.ENOSPC, f"no space left for {number}") for number in range(count)]
    error = ended(world, *errors, nested=nested)
    assert error is errors[0]
    notes = getattr(error, "__notes__", [])
    assert len(notes) == count - 1
    assert all(f"no space left for {number}" in note for number, note in enumerate(notes, 1))


def test_the_same_words_are_told_once_and_the_cause_is_kept(world: Make) -> None:
    first = RuntimeError("broken")
    first.__cause__ = cause = KeyError("why")
    error = ended(world, first, RuntimeError("broken"), RuntimeError("broken"))
    assert error is first
    assert error.__cause__ is cause
    assert not getattr(error, "__notes__", [])


def test_errors_of_different_types_are_raised_together(world: Make) -> None:
    error = ended(world, OSError("disk"), KeyError("key"))
    assert isinstance(error, ExceptionGroup)
    assert [type(part) for part in error.exceptions] == [OSError, KeyError]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_broken_observer_of_results_is_the_same_error_at_any_concurrency(
    world: Make, tmp_path: Path, concurrency: int
) -> None:
    def broken(result: VerificationResult) -> None:
        raise RuntimeError("the caller is broken")

    for number in range(5):
        here = world(questions=8)
        prepared = here.prepare(here.config(concurrency=concurrency))
        with pytest.raises(RuntimeError, match="the caller is broken"):
            asyncio.run(execute(prepared, Destination(run_dir=tmp_path / str(number)), on_result=broken))
