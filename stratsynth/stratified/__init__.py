"""One mechanism for each stratum: how strata come out of what is declared, and the mechanism that is made of them."""

from stratsynth.layout.layout import Layout
from stratsynth.stratified.around import Groupwise
from stratsynth.stratified.stratified import Stratified, makes_strata, stratify
from stratsynth.stratified.weighted import Weighted, drawn_by, known_shares, takes_shares

__all__ = [
    "Groupwise", "Layout", "Stratified", "Weighted", "drawn_by", "known_shares", "makes_strata", "stratify",
    "takes_shares",
]  # fmt: skip
