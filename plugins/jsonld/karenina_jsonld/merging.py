"""The ratings of a file with the changes of its rubrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .nodes import identical, merged, merged_properties
from .ratings import Rated

__all__ = ["merged_ratings"]

Node = dict[str, Any]
Encode = Callable[[Rated], Node]


def merged_ratings(
    nodes: Sequence[Node], read: Sequence[Rated | None], wanted: Sequence[Rated], encode: Encode
) -> list[Node]:
    """The ratings of the traits that are wanted, made from the file's `nodes`, of which `read` are the traits.

    Unchanged ratings and those that are not used (`None` in `read`) stay as they are, changed ones keep what karenina
    does not know, new ones are appended.
    """
    left = {one.key: one for one in wanted}
    known = {one.key for one in read if one is not None}
    pairs: list[tuple[Rated | None, Node]] = []
    for node, old in zip(nodes, read, strict=True):
        new = None if old is None else _successor(old, left, known)
        if old is None:
            pairs.append((None, node))
        elif new is not None:
            pairs.append((new, _merged_rating(node, old, new, encode)))
    pairs += [(one, encode(one)) for one in left.values()]
    return _in_order(pairs, wanted)


def _successor(old: Rated, left: dict[tuple[bool, str], Rated], known: set[tuple[bool, str]]) -> Rated | None:
    """What has become of a trait: the one of its name, perhaps in the other rubric now."""
    if old.key in left:
        return left.pop(old.key)
    moved = (not old.dynamic, old.trait.name)
    return None if moved in known else left.pop(moved, None)


def _merged_rating(node: Node, old: Rated, new: Rated, encode: Encode) -> Node:
    if identical(old, new):
        return node
    before, after = encode(old), encode(new)
    result = merged(node, before, after)
    # All of them, so that nothing is left to be inferred from values that have changed.
    result["additionalProperty"] = merged_properties(
        result.get("additionalProperty") or [], before["additionalProperty"], after["additionalProperty"], complete=True
    )
    return result


def _in_order(pairs: Sequence[tuple[Rated | None, Node]], wanted: Sequence[Rated]) -> list[Node]:
    """Within one list of a rubric the order is the rubric's; each list keeps its places among the ratings."""
    result = [node for _, node in pairs]
    nodes = {one.key: node for one, node in pairs if one is not None}
    places: dict[tuple[bool, str], list[int]] = {}
    for index, (one, _) in enumerate(pairs):
        if one is not None:
            places.setdefault(_list_of(one), []).append(index)
    for one in wanted:
        result[places[_list_of(one)].pop(0)] = nodes[one.key]
    return result


def _list_of(one: Rated) -> tuple[bool, str]:
    return one.dynamic, one.trait.list_name
