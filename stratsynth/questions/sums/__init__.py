"""Sums over rows: one file for a sum or a family of them, with its check, blocks and exact value.

Every module here is imported with the package: a new sum is a new file, with its class marked as `known`.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
