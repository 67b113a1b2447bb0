"""In which order answers are begun: fair between the models that answer, kind to what providers keep of prompts."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from itertools import chain, product

from attrs import define, field

from ..execution_settings import TaskOrdering
from .items import Generation, Prepared

__all__ = ["Schedule"]


@define(eq=False)
class Schedule:
    """The generations that are still to be made, each given out once, when it can begin. Nothing is kept of those that
    are over: a plan of any length needs the same memory, except a shuffled one, which takes eight bytes for each."""

    prepared: Prepared
    ordering: TaskOrdering = "auto"
    is_done: Callable[[Generation], bool] = lambda generation: False
    """Those with all their results from before are not given out."""
    may_go_on: Callable[[], bool] = lambda: True
    """When it says no, nothing more is given out."""
    _waiting: dict[int, Iterator[Generation]] = field(factory=dict)
    """What is left of each answering model, by its place among them."""
    _under_way: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        models = len(self.prepared.config.answering_models)
        ordering = self.ordering
        if ordering == "auto":
            ordering = "distribute_answerers" if models > 1 else "prefix_cache"
        if ordering == "random":
            lines = {0: self._shuffled()}
        elif ordering == "distribute_answerers":
            lines = {place: self._of(place) for place in range(models)}
        elif ordering == "generation_order":
            lines = {0: self._by_question()}
        else:  # a model's questions stand together, and so do the repetitions of a question: their prompts are equal
            lines = {0: chain.from_iterable(map(self._of, range(models)))}
        self._waiting = lines
        self._under_way = dict.fromkeys(lines, 0)

    def __iter__(self) -> Iterator[Generation]:
        return self

    def __next__(self) -> Generation:
        """The next of the model of which the fewest are under way: one that is slow does not hold up the others."""
        while self._waiting and self.may_go_on():
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

    def _of(self, answering: int) -> Iterator[Generation]:
        questions, replicates = range(len(self.prepared.questions)), range(1, self.prepared.config.replicate_count + 1)
        for question, replicate in product(questions, replicates):
            yield self.prepared.generation(answering, question, replicate)

    def _by_question(self) -> Iterator[Generation]:
        models, replicates = range(len(self.prepared.config.answering_models)), self.prepared.config.replicate_count
        for question, answering, number in product(range(len(self.prepared.questions)), models, range(replicates)):
            yield self.prepared.generation(answering, question, number + 1)

    def _shuffled(self) -> Iterator[Generation]:
        questions, replicates = len(self.prepared.questions), self.prepared.config.replicate_count
        order = array("q", range(len(self.prepared.config.answering_models) * questions * replicates))
        random.Random(self.prepared.run_name).shuffle(order)
        for number in order:
            rest, replicate = divmod(number, replicates)
            answering, question = divmod(rest, questions)
            yield self.prepared.generation(answering, question, replicate + 1)
