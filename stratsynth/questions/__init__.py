"""The closed set of questions a mechanism may ask, with their sensitivities and prices.

A mechanism yields questions and is sent answers; it never sees a row. What one record can change in an answer, how
much noise that takes, what is charged for it and how it is answered are written in this folder and nowhere else: one
file a kind.
"""

from stratsynth.questions.attribute import AttributeGradients
from stratsynth.questions.base import Answer, Program, Question
from stratsynth.questions.choose import Choose, choose
from stratsynth.questions.compose import Solver, Split, Work, split, work
from stratsynth.questions.composite import Composite, Term
from stratsynth.questions.confusions import Confusions
from stratsynth.questions.counts import Counts, NoisyTable, counts
from stratsynth.questions.designs import Coded
from stratsynth.questions.fairness import FairGradients
from stratsynth.questions.gradients import Gradients, Losses
from stratsynth.questions.grouped import GroupLosses
from stratsynth.questions.mitigation import Mitigated
from stratsynth.questions.networks import NetworkGradients, NetworkLosses
from stratsynth.questions.newton import Curvature
from stratsynth.questions.pairs import Independence, Pairs
from stratsynth.questions.perrow import PerRow, PerRowGradients
from stratsynth.questions.public import PublicRows, public_rows
from stratsynth.questions.queries import Block, Columns, Design, Glm, Moments, Query, RowVectors
from stratsynth.questions.raw import Claim, Raw, raw
from stratsynth.questions.reading import Clique
from stratsynth.questions.scores import Distance, Peak, Score
from stratsynth.questions.total import NoisySum, Total, total

__all__ = [
    "Answer",
    "AttributeGradients",
    "Block",
    "Choose",
    "Claim",
    "Clique",
    "Coded",
    "Columns",
    "Composite",
    "Confusions",
    "Counts",
    "Curvature",
    "Design",
    "Distance",
    "FairGradients",
    "Glm",
    "Gradients",
    "GroupLosses",
    "Independence",
    "Losses",
    "Mitigated",
    "Moments",
    "NetworkGradients",
    "NetworkLosses",
    "NoisySum",
    "NoisyTable",
    "Pairs",
    "Peak",
    "PerRow",
    "PerRowGradients",
    "Program",
    "PublicRows",
    "Query",
    "Question",
    "Raw",
    "RowVectors",
    "Score",
    "Solver",
    "Split",
    "Term",
    "Total",
    "Work",
    "choose",
    "counts",
    "public_rows",
    "raw",
    "split",
    "total",
    "work",
]
