"""Releases: the folder, its certificate and its measurements."""

from stratsynth.release.release import Release

__all__ = ["Release"]
