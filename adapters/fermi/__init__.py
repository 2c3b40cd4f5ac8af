"""DP-FERMI: private classifiers whose predictions are pulled towards independence of a sensitive attribute."""

from stratsynth.adapters.fermi.mechanism import DPFermi

__all__ = ["DPFermi"]
