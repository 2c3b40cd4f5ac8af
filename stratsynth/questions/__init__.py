"""The closed set of questions that a mechanism may ask, with their sensitivities and prices.

A mechanism yields questions and is sent answers; it never sees a row. The sensitivity of an answer, the noise that
it takes, its charge and the way it is answered are written in this folder and nowhere else, in a file for
each kind, or for a family of them.
"""

from importlib import import_module
from pkgutil import iter_modules

from stratsynth.questions.admission import close
from stratsynth.questions.base import Answer, Program, Question
from stratsynth.questions.choose import Choose, choose
from stratsynth.questions.compose import Solver, Split, Work, split, work
from stratsynth.questions.composite import Composite, Term
from stratsynth.questions.counts import Counts, NoisyTable, counts
from stratsynth.questions.pairs import Independence, Pairs
from stratsynth.questions.peak import Peak
from stratsynth.questions.public import Claim, PublicRows, Raw, public_rows, raw
from stratsynth.questions.reading import Clique
from stratsynth.questions.scores import Distance, Score
from stratsynth.questions.sums.base import Block, Query, Sum
from stratsynth.questions.sums.columns import Columns
from stratsynth.questions.sums.design import Coded, Design
from stratsynth.questions.sums.fairness import AttributeGradients, FairGradients
from stratsynth.questions.sums.gradients import Curvature, Gradients, Moments
from stratsynth.questions.sums.losses import Confusions, GroupLosses, Losses
from stratsynth.questions.sums.mitigation import Mitigated
from stratsynth.questions.sums.networks import NetworkGradients, NetworkLosses
from stratsynth.questions.sums.perrow import PerRow, PerRowGradients
from stratsynth.questions.sums.row_vectors import RowVectors
from stratsynth.questions.total import NoisySum, Total, total
from stratsynth.questions.usable import Usable, usable

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
    "Sum",
    "Term",
    "Total",
    "Usable",
    "Work",
    "choose",
    "counts",
    "public_rows",
    "raw",
    "split",
    "total",
    "usable",
    "work",
]

# A new kind of question is a new file in this folder. After the last one the set of kinds is closed.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
close()
