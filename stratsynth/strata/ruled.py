"""Structural rules inside strata, for models and samples; private rows are counted whether they keep them or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stratsynth.schema import Rule, Schema
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.schema.rules import feasible

if TYPE_CHECKING:
    from stratsynth.strata.strata import Stratum


def impossible(schema: Schema, strata: Iterable[Stratum]) -> frozenset[Stratum]:
    """Return the set of those `strata` in which the schema's rules allow no row; empty for a schema without rules."""
    if not schema.rules:
        return frozenset()
    if not isinstance(schema, CountedTables):
        rules = feasible(schema)
        return frozenset(s for s in strata if not rules.keeps(s.codes(schema)))
    at = {stratum: schema.at(stratum.items) for stratum in strata}
    codes = {s: {c: [inner.index(c, one) for one in levels] for c, levels in items} for s, (inner, items) in at.items()}
    return frozenset(s for s, (inner, _) in at.items() if not feasible(inner).keeps(codes[s]))


def inside(schema: Schema, inner: Schema, stratum: Stratum) -> Iterator[Rule]:
    """Yield a `Rule` on `inner`, a stratum's schema, for each box of the schema's that names the stratum's columns."""
    here = stratum.codes(schema)
    for rule in schema.rules:
        if rule.names.isdisjoint(here):
            continue
        for box in rule.cells(schema):
            cut = {c: codes.intersection(here[c]) if c in here else codes for c, codes in box.items()}
            if not all(cut[c] for c in cut if c in here):
                continue
            rest = {c: tuple(schema.levels(c)[i] for i in sorted(cut[c])) for c in cut if c in inner.columns}
            if not rest or not all(rest.values()):
                continue
            name, levels = rest.popitem()
            # a level that cannot occur at all is forbidden whatever level another column has
            alongside = inner.alongside(name) if isinstance(inner, CountedTables) else inner.names
            others = [c for c in alongside if c != name]
            when = rest or {c: inner.levels(c) for c in others[:1]}
            if when:
                yield Rule(when=when, never={name: levels})
