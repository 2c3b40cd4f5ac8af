"""Mechanisms in strata: one program per stratum, combined by weights; and fits of all records with public shares."""

from stratsynth.layout.layout import Layout
from stratsynth.stratified.stratified import Stratified, makes_strata, stratify
from stratsynth.stratified.weighted import Weighted, drawn_by, known_shares, takes_shares
from stratsynth.stratified.wrapper import Groupwise

__all__ = [
    "Groupwise",
    "Layout",
    "Stratified",
    "Weighted",
    "drawn_by",
    "known_shares",
    "makes_strata",
    "stratify",
    "takes_shares",
]
