"""What leaves the house: the release folder, its certificate and its measurements."""

from stratsynth.release.release import Release

__all__ = ["Release"]
