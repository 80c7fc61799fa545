"""Trees in characters: heads can be read back from the lines."""

from __future__ import annotations

from tests.oracles.dependencies import trees
from trelliswork.draw.dependencies import _BOXES, DOWN, LEFT, UP, arc_lines


def read_back(lines: list[str], word: int) -> int:
    """Follow the line of a word to the left, then up and down to the row whose own line comes from farther left."""
    cells = [[_BOXES.index(character) for character in line] for line in lines]
    place = next(at for at, cell in enumerate(cells[word]) if cell and not cell & LEFT and _runs(cells[word], at))
    rows = [word]
    while cells[rows[0]][place] & UP:
        rows.insert(0, rows[0] - 1)
    while cells[rows[-1]][place] & DOWN:
        rows.append(rows[-1] + 1)
    heads = [row for row in rows if row != word and cells[row][place] & LEFT]
    return heads[0] + 1 if heads else 0


def _runs(row: list[int], start: int) -> bool:
    """Whether a line goes from here to the word without a gap."""
    return all(cell & LEFT for cell in row[start + 1 : -1])


def test_heads_of_all_small_projective_trees_can_be_read_back() -> None:
    for n in range(1, 6):
        for heads in trees(n, True, projective=True):
            lines = arc_lines(heads)
            assert len({len(line) for line in lines}) == 1
            assert tuple(read_back(lines, word) for word in range(n)) == heads, "\n".join(lines)


def test_crossing_arcs_are_drawn_too() -> None:
    assert arc_lines((3, 0, 2, 3)) == ["    ╭─╴ ", "╶─┬─┼─╴ ", "  ╰─┼─╴ ", "    ╰─╴ "]
    assert arc_lines(()) == []
