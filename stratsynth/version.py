"""Which version this is, by the metadata of what is installed."""

from importlib.metadata import version

VERSION = version("stratsynth")
