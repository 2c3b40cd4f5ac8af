"""What the program of one stratum is told, and which strata are told the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.mechanisms import Mechanism, Public
from stratsynth.questions import Program
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment


@dataclass(frozen=True)
class Given:
    """One stratum's mechanism, with all that it is given: its levels are not among it."""

    mechanism: Mechanism[Any]
    public: Public
    allot: Allotment
    made_up: float
    """What no program sees: the size, or where none is declared the share, by which a rehearsal makes up answers."""

    def steps(self, rng: Generator) -> Program[Any]:
        """Its program."""
        return self.mechanism.steps(self.public, self.allot, rng)

    def rehearsal(self, seed: int) -> Program[Any]:
        """Its rehearsal, the same whenever it is given the same."""
        return self.mechanism.rehearsal(self.public, self.allot, np.random.default_rng(seed))

    @property
    def known(self) -> Hashable:
        """All that its rehearsal depends on, made-up answers included."""
        return id(self.mechanism), self.public, self.allot, self.made_up


def made_up(size: int | None, share: float) -> float:
    """By what answers are made up in a stratum with this share in the layout, of a table of the declared size.

    With private weights it is not the size that the program is told, which follows from a noisy answer.
    """
    return share if size is None else round(size * share)


def alike(given: Mapping[Stratum, Given]) -> dict[Stratum, list[Stratum]]:
    """The first stratum of each kind, with all strata of which the same is known, itself among them."""
    kinds: dict[Hashable, list[Stratum]] = {}
    for stratum, one in given.items():
        kinds.setdefault(one.known, []).append(stratum)
    return {kind[0]: kind for kind in kinds.values()}
