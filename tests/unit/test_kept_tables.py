"""Exact tables of a choice are kept for the next one; those that are out of it are forgotten."""

import numpy as np

from stratsynth.driver.answering import Reader
from stratsynth.questions.reading import Wanted

PATH = ()
PAIRS = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "d")]


class Counted:
    """Rows that note what is counted."""

    def __init__(self):
        self.asked = []

    def counts(self, asked):
        self.asked += [clique for _, cliques in asked for clique in cliques]
        return [[np.full((2, 2), PAIRS.index(clique)) for clique in cliques] for _, cliques in asked]


def test_what_is_out_of_the_choice_is_forgotten_and_what_is_in_it_kept():
    rows = Counted()
    reader = Reader(rows, None)

    def read(cliques, *, again=True):
        (exact,) = reader.each([(PATH, Wanted(cliques=cliques, again=again))])
        assert [int(table[0, 0]) for table in exact.tables] == [PAIRS.index(clique) for clique in cliques]

    read(PAIRS)
    read(PAIRS[:3])
    assert rows.asked == PAIRS  # half of them are still asked about: nothing is forgotten
    assert reader._kept_cells == 4 * 6
    read(PAIRS[:1], again=False)  # no choice
    assert list(reader._kept[PATH]) == PAIRS
    read(PAIRS[:2])
    assert rows.asked == PAIRS
    assert list(reader._kept[PATH]) == PAIRS[:2]
    assert reader._kept_cells == 4 * 2
    read(PAIRS[1:3])
    assert rows.asked == [*PAIRS, PAIRS[2]]
    assert reader._kept_cells == 4 * 3
