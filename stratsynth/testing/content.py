"""Digest of a value's content: of anything that a mechanism or a model may return, arrays and data frames included."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from stratsynth.digest import Digested, digest
from stratsynth.schema import Schema

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def content(value: Any) -> str:
    """Return a digest, as text, that is equal for values of equal content, to the last bit, in any process."""
    return digest(_plain(value))


def _plain(value: Any) -> Any:  # noqa: PLR0911 - a table of kinds
    """Return a value in kinds that `digest` accepts; one of unknown type as its text, without memory addresses."""
    if value is None or isinstance(value, bool | int | float | str | Digested | type):
        return value
    if isinstance(value, Schema):
        return value.sha256
    if isinstance(value, np.generic):
        return [value.dtype.str, _plain(value.item())]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, _plain(value.tolist())] if value.dtype.kind == "O" else value
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare}
        return [type(value).__qualname__, fields]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, AbstractSet):
        return sorted(content(item) for item in value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _listed(value)
    if isinstance(value, pd.DataFrame | pd.Series):
        return [type(value).__qualname__, _plain(value.reset_index().to_dict("list"))]
    if isinstance(value, pa.Table):
        return ["table", _plain(value.to_pydict())]
    return [type(value).__qualname__, _ADDRESS.sub("", repr(value))]


def _listed(items: Sequence[Any]) -> list[Any]:
    """Return the items in kinds that `digest` accepts; floats alone as one array, and texts alone as one text."""
    kinds = set(map(type, items))
    if kinds == {float}:
        numbers = np.array(items)
        return ["floats", np.where(np.isnan(numbers), np.nan, numbers)]  # whatever the bits of a missing one
    if kinds == {str}:
        return ["texts", np.array([len(item) for item in items]), "".join(items)]
    return [_plain(item) for item in items]
