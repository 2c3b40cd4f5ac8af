"""Two linked tables for tests: counted one parent after another, in plain Python, and fitted without noise."""

import math
from itertools import groupby

import numpy as np
import pandas as pd

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem, solve
from stratsynth.adapters.engine.structure import forbidden
from stratsynth.adapters.linked import CountRole, LinkedModels, LinkRoles, SumRole
from stratsynth.schema import Rule
from stratsynth.schema.encoding import encode

AGES = (-50, -35, -25, -15, -5, -2, 0, 1, 3, 6, 16, 26, 36)
NUMBERS = tuple(range(0, 100, 10))[1:]


def bins(column, value):
    return int(np.clip(np.searchsorted(column.breaks, value, side="right") - 1, 0, len(column.extents) - 1))


def band(ends, value):
    return len(ends) + 1 if math.isnan(value) else sum(value >= end for end in ends)


class Counted:
    """The rows of the three models of two frames, one parent after another."""

    def __init__(self, roles, parents, children, key, order):
        self.roles, self.rows = roles, {"parent": [], "second": [], "others": []}
        schema = roles.child
        below = children.sort_values([key, order], kind="stable").reset_index(drop=True)
        coded = encode(schema, _arrow(below[list(schema.names)]))
        self.sizes = {}
        values = below.to_dict("records")
        above = encode(roles.parent, _arrow(parents[list(roles.parent.names)]))
        own = [{n: int(above.codes[n][i]) for n in roles.parent.names} for i in range(len(parents))]
        rows = [{n: int(coded.codes[n][i]) for n in schema.names} for i in range(len(below))]
        by_key = {k: list(g) for k, g in groupby(range(len(below)), key=lambda i: values[i][key])}
        for parent, name in zip(own, parents[key], strict=True):
            which = by_key.get(name, [])
            self._add(dict(parent), [rows[i] for i in which], [values[i] for i in which])

    def _add(self, parent, rows, values):
        roles = self.roles
        for name, count in roles.counts.items():
            met = [self._met(count, row) and not (count.besides_first and i == 0) for i, row in enumerate(rows)]
            least = min(sum(met) - count.least, TOP[name] - count.least)
            parent[name] = least
        condition = CountRole(where=roles.condition)
        money = [0.0 if v is None else v for v in (self._value(v, roles.summed and roles.summed.of) for v in values)]
        if roles.summed is not None:
            parent[roles.summed.column] = bins(roles.parent.column(roles.summed.column), sum(money))
            parent["SHR"] = band(roles.summed.ends, sum(money[1:]))
        for name in roles.child.names:
            parent[f"R_{name}"] = rows[0][name] if rows else 0
        self.rows["parent"].append(parent)
        for i, row in enumerate(rows[1:], start=1):
            left = rows[i:]
            met = sum(self._met(condition, each) for each in left) if roles.condition else 0
            others = len(left) - met
            state = 3 * min(met, 2) + min(others, 2) - 1 if roles.condition else min(others, 2) - 1
            found = {**parent, **row, "ST": state}
            if roles.summed is not None:
                found["REM"] = band(roles.summed.ends, sum(money[i:]))
                found["ALL"] = int(money[i] == sum(money[i:]))
            if roles.stepped is not None:
                before, now = (self.number(values[j]) for j in (i - 1, i))
                found["PREV"], found["DIF"] = band(roles.previous, before), band(roles.differences, now - before)
            self.rows["second" if i == 1 else "others"].append(found)

    def _met(self, count, row):
        return all(row[name] in levels for name, levels in count.where.items())

    def _value(self, row, name):
        return None if name is None or row[name] != row[name] else row[name]

    def number(self, row):
        """Number of the stepped column in a row of the frame."""
        return row[self.roles.stepped]

    def frame(self, slot):
        return pd.DataFrame(self.rows[slot])


TOP = {}
"""Largest number that each count tells apart."""


def _arrow(frame):
    import pyarrow as pa

    return pa.Table.from_pandas(frame, preserve_index=False)


def sizes_of(roles):
    """Number of levels of every column of the models."""
    found = {name: roles.parent.size(name) for name in roles.parent.names}
    found |= {name: TOP[name] - count.least + 1 for name, count in roles.counts.items()}
    found |= {f"R_{name}": roles.child.size(name) for name in roles.child.names}
    found |= {name: roles.child.size(name) for name in roles.child.names}
    found |= {"ST": 8 if roles.condition else 2, "ALL": 2}
    found |= {"PREV": len(roles.previous) + 2, "DIF": len(roles.differences) + 2}
    if roles.summed is not None:
        found |= {"REM": len(roles.summed.ends) + 2, "SHR": len(roles.summed.ends) + 2}
    return found


def fitted(roles, frame, cliques, rules=(), prefix=""):
    """The model of some columns of counted rows with the exact tables of `cliques`."""
    names, levels = list(dict.fromkeys(c for clique in cliques for c in clique)), sizes_of(roles)
    columns = {prefix + n: Categorical(levels=tuple(map(str, range(levels[n])))) for n in names}
    schema = Schema(columns, rules=tuple(rules))
    tables = []
    for clique in cliques:
        cells = np.ravel_multi_index([frame[c].to_numpy() for c in clique], [levels[c] for c in clique])
        counts = np.bincount(cells, minlength=math.prod(levels[c] for c in clique))
        own = tuple(prefix + c for c in clique)
        tables.append(MeasuredTable(own, counts.reshape(schema.shape(own)).astype(float), 1.0))
    sizes = tuple((name, column.size) for name, column in columns.items())
    zeros = {c: cells for c, cells in forbidden(schema).items() if any(set(c) <= set(t.clique) for t in tables)}
    return Graphical.of(schema, solve([Problem(sizes, tuple(tables), float(len(frame)), zeros, iterations=400)])[0])


def codes_rule(when, never):
    """Rule of a model's columns, whose levels are the codes."""
    return Rule(
        when={n: tuple(map(str, c)) for n, c in when.items()}, never={n: tuple(map(str, c)) for n, c in never.items()}
    )


def household_roles(parent, child):
    """Roles of the built-in census's households."""
    TOP.update(NP=8, N18=5)
    young = frozenset(i for i, (_, top) in enumerate(child.column("AGEP").extents) if top < 18)
    return LinkRoles(
        parent=parent,
        child=child,
        size="NP",
        counts={"NP": CountRole(least=1), "N18": CountRole(where={"AGEP": young}, besides_first=True)},
        state="N18",
        summed=SumRole(column="HINCP", of="PINCP", ends=(0, 1, 10_001, 30_001, 60_001, 100_001)),
        stepped="AGEP",
        differences=AGES,
        previous=NUMBERS,
        most=10,
    )


HOUSEHOLD = (
    ("NP", "N18", "HHT"),
    ("HHT", "R_AGEP", "R_MAR"),
    ("HHT", "R_SEX"),
    ("NP", "HHT", "SHR"),
    ("HINCP", "SHR", "R_PINCP"),
    ("HHT", "R_AGEP", "N18"),
    ("HHT", "TEN"),
)
SECOND = (
    ("HHT", "N18", "DIF"),
    ("R_AGEP", "DIF", "AGEP"),
    ("HHT", "MAR", "DIF"),
    ("AGEP", "MAR"),
    ("HHT", "R_SEX", "SEX"),
    ("AGEP", "PINCP"),
    ("SHR", "ALL", "PINCP"),
    ("NP", "ALL", "SHR"),
)
OTHERS = (
    ("ST", "DIF", "PREV"),
    ("PREV", "DIF", "AGEP"),
    ("AGEP", "MAR"),
    ("AGEP", "PINCP"),
    ("REM", "ALL", "PINCP"),
    ("ST", "ALL", "REM"),
    ("HHT", "DIF"),
    ("AGEP", "SEX"),
)


def person_rules(child, prefix):
    """Rules of persons: nobody under 15 is or was married, or has an income; all others have one."""
    ages = child.column("AGEP").extents
    young = [i for i, (_, top) in enumerate(ages) if top < 15]
    money = child.size("PINCP")
    return (
        codes_rule({f"{prefix}AGEP": young}, {f"{prefix}MAR": (0, 1, 2, 3), f"{prefix}PINCP": range(money - 1)}),
        codes_rule(
            {f"{prefix}AGEP": [i for i in range(len(ages)) if i not in young]}, {f"{prefix}PINCP": (money - 1,)}
        ),
    )


def household_models(roles, counted):
    """Models of households and persons, with their rules, fitted to counted rows."""
    married = codes_rule({"HHT": (0,)}, {"MAR": (1, 2, 3, 4)})
    alone = (
        codes_rule({"NP": (0,)}, {"HHT": (0, 1, 2, 4, 6), "N18": range(1, 6), "SHR": (0, 2, 3, 4, 5, 6, 7)}),
        codes_rule({"NP": range(1, 8)}, {"HHT": (3, 5)}),
        *(codes_rule({"NP": (n,)}, {"N18": range(n + 1, 6)}) for n in range(1, 5)),
    )
    rules = person_rules(roles.child, "")
    return LinkedModels(
        parent=fitted(roles, counted.frame("parent"), HOUSEHOLD, alone),
        second=fitted(roles, counted.frame("second"), SECOND, (married, *rules)),
        others=fitted(roles, counted.frame("others"), OTHERS, rules),
    )
