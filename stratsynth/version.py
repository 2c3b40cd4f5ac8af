"""Version of the installed package, by its metadata."""

from importlib.metadata import version

VERSION = version("stratsynth")
