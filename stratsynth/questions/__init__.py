"""The closed set of questions a mechanism may ask, with their sensitivities and prices.

A mechanism yields questions and is sent answers; it never sees a row. What one record can change in an
answer, how much noise that takes, and what is charged for it are written in this folder and nowhere else.
"""

from stratsynth.questions.base import Answer, Clique, Program, Question
from stratsynth.questions.choose import Choose, Distance, Peak, Score, choose
from stratsynth.questions.compose import Split, Work, split, work
from stratsynth.questions.counts import Counts, NoisyTable, counts
from stratsynth.questions.queries import Block, Columns, Design, Glm, Moments, Query, RowVectors
from stratsynth.questions.raw import Claim, Raw, raw
from stratsynth.questions.total import NoisySum, Total, total

__all__ = [
    "Answer",
    "Block",
    "Choose",
    "Claim",
    "Clique",
    "Columns",
    "Counts",
    "Design",
    "Distance",
    "Glm",
    "Moments",
    "NoisySum",
    "NoisyTable",
    "Peak",
    "Program",
    "Query",
    "Question",
    "Raw",
    "RowVectors",
    "Score",
    "Split",
    "Total",
    "Work",
    "choose",
    "counts",
    "raw",
    "split",
    "total",
    "work",
]
