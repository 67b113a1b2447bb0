"""In which order answers are generated: fair between answering models, and with equal prompts next to each other."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import product, starmap

from attrs import define, field

from ..execution_settings import TaskOrdering
from .items import Generation, Prepared


@define(eq=False)
class Schedule:
    """The generations that are still to be made, each given out once, when it can begin. Nothing is kept of those that
    are over: memory follows the number of questions, and that of all generations only where they are shuffled: eight
    bytes for each."""

    prepared: Prepared
    ordering: TaskOrdering = "auto"
    is_done: Callable[[Generation], bool] = lambda generation: False
    """Those that have all their results already are not given out."""
    may_continue: Callable[[], bool] = lambda: True
    """Where it is False, nothing more is given out."""
    _waiting: dict[int, Iterator[Generation]] = field(factory=dict)
    """What is left of each answering model, by its place among them."""
    _under_way: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        config = self.prepared.config
        models, questions = range(len(config.answering_models)), range(len(self.prepared.questions))
        replicates = range(1, config.replicate_count + 1)
        ordering = self.ordering
        if ordering == "auto":
            ordering = "distribute_answerers" if len(models) > 1 else "prefix_cache"
        lines: dict[int, Iterable[tuple[int, int, int]]]
        if ordering == "random":
            lines = {0: self._shuffled(len(models), len(questions), len(replicates))}
        elif ordering == "distribute_answerers":
            lines = {place: product((place,), questions, replicates) for place in models}
        elif ordering == "generation_order":
            by_question = product(questions, models, replicates)
            lines = {0: ((model, question, replicate) for question, model, replicate in by_question)}
        else:  # questions of a model come together, and so do replicates of a question: their prompts are equal
            lines = {0: product(models, questions, replicates)}
        self._waiting = {place: starmap(self.prepared.generation, line) for place, line in lines.items()}
        self._under_way = dict.fromkeys(lines, 0)

    def __iter__(self) -> Iterator[Generation]:
        return self

    def __next__(self) -> Generation:
        """The next of the model of which the fewest are under way: one that is slow does not hold up the others."""
        while self._waiting and self.may_continue():
            place = min(self._waiting, key=lambda place: (self._under_way[place], place))
            for generation in self._waiting[place]:
                if not self.is_done(generation):
                    self._under_way[place] += 1
                    return generation
            del self._waiting[place]
        raise StopIteration

    def over(self, generation: Generation) -> None:
        """All items of a generation that was given out have their results, or will have none."""
        place = self.prepared.config.answering_models.index(generation.items[0].answering)
        self._under_way[place if place in self._under_way else 0] -= 1

    def _shuffled(self, models: int, questions: int, replicates: int) -> Iterator[tuple[int, int, int]]:
        order = array("q", range(models * questions * replicates))
        random.Random(self.prepared.run_name).shuffle(order)
        for number in order:
            rest, replicate = divmod(number, replicates)
            yield *divmod(rest, questions), replicate + 1
