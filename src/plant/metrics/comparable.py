"""Which scores can be compared: those of one split and one label space, on the same documents with the same truth."""

from __future__ import annotations

from collections.abc import Iterable

from plant.ground.errors import InputError
from plant.ground.identity import digest
from plant.metrics.scores import Scores

FIX = "Compare systems of one dataset; if both are, delete the older evaluation folder and run again."


def require_comparable(first: Scores, second: Scores, where: str) -> None:
    """Refuse to compare scores over two label spaces, two splits, or with other true labels.

    Two splits or label spaces are told apart by what they hold (the documents that were scored, the labels, both in
    their order) and by their names, where both are named: a published name stands for one protocol.

    Raises:
        InputError: it names both.
    """
    for place, (what, one, other) in enumerate(
        (
            ("the same documents (one split)", first.document_ids, second.document_ids),
            ("one label space", first.label_names, second.label_names),
        )
    ):
        names = first.names[place], second.names[place]
        if one != other or (None not in names and names[0] != names[1]):
            raise InputError(
                where,
                expected=f"scores on {what}",
                got=f"two: {_described(names[0], one)} and {_described(names[1], other)}",
                fix=FIX,
            )
    if (first.truth != second.truth).nnz:
        raise InputError(
            where, expected="the same documents with the same true labels", got="other true labels", fix=FIX
        )


def _described(name: str | None, members: Iterable[str]) -> str:
    members = tuple(members)
    return f"{name or 'one without a name'} ({len(members)}, {digest(members)[:8]})"
