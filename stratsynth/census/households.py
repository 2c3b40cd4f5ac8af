"""Households of the census: a householder, drawn as people are, and whoever lives with them, placed around them.

Ages, race and marriage of the others follow from the householder's; all else is drawn as for anybody of that age, sex,
race and marriage. Income of the household is the sum of theirs. A household is a function of the seed and its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stratsynth.census.draws import draws, keys, keys_of
from stratsynth.census.model import Codes, household_tables, schema, tables
from stratsynth.census.people import ABSENT, between, people_of
from stratsynth.census.years import YEAR

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CHUNK = 1 << 13
"""Number of households made at a time."""
START = 1 << 50
"""Number of the first household's householder: no person of `make` has it."""
CHILDREN, HOUSEMATES = 6, 4
OLDEST = 95
ADULT = 18
MARRIED, WIDOWED, NEVER = 0, 1, 4
"""Codes of MAR."""
PERSON = ("AGEP", "SEX", "RAC1P", "HISP", "CIT", "MAR", "SCHL", "DIS", "ESR", "PINCP")
"""Columns of persons, those of the census of people."""

Keys = NDArray[np.uint64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Member:
    """One member of each household of a chunk, where there is one."""

    there: Mask
    age: Codes
    keys: Keys
    race: Codes
    origin: Codes
    married: Codes
    """Code of MAR; -1 for one that is drawn and not married, -2 for the householder's as it is drawn."""
    sex: Codes
    """Code of SEX; -1 for one that is drawn."""


def frames(seed: int, start: int, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames (households, persons) of `rows` households of a seed, from number `start` on."""
    import pandas as pd
    import pyarrow as pa

    from stratsynth.census.two_tables import household_schema, person_schema
    from stratsynth.schema.codec import to_pandas

    above, below = household_schema(), person_schema()
    parents: list[pa.Table] = []
    children: list[pa.Table] = []
    for first, households, persons in chunks(seed, start, rows):
        parents.append(_table(above, households, "SERIALNO", households["SERIALNO"] + first))
        children.append(_table(below, persons, "SERIALNO", persons["SERIALNO"] + first, persons["SPORDER"]))
    joined = [to_pandas(pa.concat_tables(each)) for each in (parents, children)]
    return pd.DataFrame(joined[0]), pd.DataFrame(joined[1])


def chunks(seed: int, start: int, rows: int) -> Iterator[tuple[int, dict[str, Codes], dict[str, Codes]]]:
    """Yield (number of a chunk's first household, households' codes, persons' codes) for chunks of `rows` households.

    Both codes are dicts from column to an int array, of numeric columns numbers; SERIALNO counts the households of the
    chunk from 0 on. They follow from `seed` and the household's number, counted from `start` on.
    """
    for at in range(0, max(rows, 1), CHUNK):
        yield (start + at, *_chunk(keys(seed, START + start + at, min(CHUNK, rows - at))))


def _chunk(own: Keys) -> tuple[dict[str, Codes], dict[str, Codes]]:
    members = _members(own)
    there = np.stack([member.there for member in members], axis=1)
    home, which = np.nonzero(there)  # by household, in the order of members

    def spread(name: str) -> Codes:
        found: Codes = np.stack([getattr(member, name) for member in members], axis=1)[home, which]
        return found

    age, size = spread("age"), there.sum(axis=1)
    married, sex, race, origin = (spread(name) for name in ("married", "sex", "race", "origin"))
    area = _drawn("AREA", {}, own)[home]
    none = schema().levels("NP").index("1") - 1
    people = people_of(
        np.stack([member.keys for member in members], axis=1)[home, which],
        YEAR,
        {
            "AREA": lambda _: area,
            "RAC1P": lambda _: race,
            "HISP": lambda _: origin,
            "SEX": lambda codes: np.where(sex < 0, codes["SEX"], sex),
            "AGE5": lambda _: np.minimum(age // 5, 18),
            "AGE1": lambda codes: age - 5 * codes["AGE5"],
            "HOUSING_TYPE": lambda codes: np.zeros_like(codes["AGEP"]),
            "MAR": lambda codes: _marriage(married, codes),
            "NP": lambda _: none + np.minimum(size, 8)[home],
            "NOC": lambda codes: np.where(codes["NP"] == none + 1, 1, np.minimum(codes["NOC"], size[home])),
        },
    )
    persons = {name: people[name] for name in PERSON}
    persons |= {"SERIALNO": home, "SPORDER": np.arange(len(home)) - (np.cumsum(size) - size)[home] + 1}
    first = np.flatnonzero(persons["SPORDER"] == 1)
    income = np.where(people["PINCP"] == ABSENT["PINCP"], 0, people["PINCP"])
    households = {
        "SERIALNO": np.arange(len(own)),
        "AREA": area[first],
        "NP": size,
        "HHT": _type(members, people["SEX"][first], size),
        "TEN": people["TEN"][first] - schema().levels("TEN").index("1"),
        "N18": np.bincount(home[(age < ADULT) & (which > 0)], minlength=len(own)),
        "HINCP": np.bincount(home, income, minlength=len(own)).astype(np.int64),
    }
    return households, persons


def _marriage(stated: Codes, codes: Mapping[str, Codes]) -> Codes:
    """Return an array of codes of MAR, an entry a person: `stated` ones from 0 on, others by `codes`.

    At -1 it is that of `codes` without "married", at -2 that of `codes`, a mapping from column to array.
    """
    apart = np.where(codes["AGEP"] >= 65, WIDOWED, NEVER)
    single = np.where(codes["MAR"] == MARRIED, apart, codes["MAR"])
    return np.where(stated >= 0, stated, np.where(stated == -1, single, codes["MAR"]))


def _members(own: Keys) -> list[_Member]:
    """Return a list of `_Member`, the householder first: its arrays have an entry for each household key in `own`."""
    head = people_of(
        own,
        YEAR,
        {
            "AGE5": lambda codes: household_tables()["HEAD"].draw(codes, draws(own, "HEAD")),
            "HOUSING_TYPE": lambda codes: np.zeros_like(codes["AGEP"]),
        },
    )
    codes, n, everyone = dict(head), len(own), np.ones(len(own), dtype=bool)
    age, race, origin = head["AGEP"], head["RAC1P"], head["HISP"]
    found = [_Member(everyone, age, own, race, origin, np.full(n, -2), head["SEX"])]

    def drawn(name: str) -> Codes:
        codes[name] = _drawn(name, codes, own)
        return codes[name]

    def years(name: str, level: Codes, key: str) -> Codes:
        found: Codes = between(household_tables()[name].levels, level, draws(own, key))
        return found

    couple = drawn("COUPLE")
    together, spouse = couple > 0, couple == 1
    partner = np.clip(age + years("COUPLE_GAP", drawn("COUPLE_GAP"), "years apart"), ADULT, OLDEST)
    own_race = drawn("SAME_RACE") == 1
    theirs = np.where(own_race, race, _drawn("RAC1P", codes, own, "partner"))
    their_origin = np.where(own_race, origin, _drawn("HISP", {**codes, "RAC1P": theirs}, own, "partner"))
    sex = np.where(drawn("SAME_SEX") == 1, head["SEX"], 1 - head["SEX"])
    found.append(
        _Member(together, partner, keys_of(own, "partner"), theirs, their_origin, np.where(spouse, MARRIED, -1), sex)
    )
    codes["COUPLE"] = couple
    number = drawn("CHILDREN")
    youngest_parent = np.where(together, np.minimum(age, partner), age)
    each = np.minimum(years("OLDEST", drawn("OLDEST"), "years of the oldest"), youngest_parent - 15)
    eldest, some = each, np.zeros(n, dtype=bool)
    # children of parents of two races are of two or more as often as of one
    two = len(schema().levels("RAC1P")) - 1
    for child in range(CHILDREN):
        key = keys_of(own, f"child {child}")
        here = (number > child) & (each >= 0)
        mixed = together & (theirs != race) & (draws(key, "race") % 2 == 0)
        found.append(
            _Member(here, np.maximum(each, 0), key, np.where(mixed, two, race), origin, _single(each), np.full(n, -1))
        )
        some |= here
        each = each - years("YOUNGER", _drawn("YOUNGER", codes, key), f"years to child {child}")
    level = drawn("GRANDCHILD")
    age_of = np.minimum(years("GRANDCHILD", level, "years of a grandchild"), eldest - 15)
    here = (number > 0) & (eldest >= ADULT - 1) & (level > 0) & (age_of >= 0)
    key = keys_of(own, "grandchild")
    found.append(_Member(here, np.maximum(age_of, 0), key, race, origin, np.full(n, NEVER), np.full(n, -1)))
    level = drawn("ELDER")
    elder = age + years("ELDER", level, "years of a parent")
    here = (level > 0) & (elder <= OLDEST)
    key = keys_of(own, "elder")
    found.append(_Member(here, np.minimum(elder, OLDEST), key, race, origin, np.full(n, -1), np.full(n, -1)))
    alone = ~together & ~np.any([member.there for member in found[1:]], axis=0)
    number = drawn("OTHERS_THERE")
    for other in range(HOUSEMATES):
        key = keys_of(own, f"housemate {other}")
        years_old = np.clip(
            age + years("OTHERS_GAP", _drawn("OTHERS_GAP", codes, key), f"other {other}"), ADULT, OLDEST
        )
        own_race = _drawn("RAC1P", codes, key)
        own_origin = _drawn("HISP", {**codes, "RAC1P": own_race}, key)
        found.append(
            _Member(alone & (number > other), years_old, key, own_race, own_origin, np.full(n, -1), np.full(n, -1))
        )
    return found


def _single(age: Codes) -> Codes:
    """Return an array of codes of MAR of children at home, by their ages, the array `age`.

    Below 25 they never married, else -1: to be drawn.
    """
    return np.where(age < 25, NEVER, -1)


def _drawn(name: str, codes: Mapping[str, Codes], own: Keys, of: str = "") -> Codes:
    """Return an array of codes drawn of variable `name` (`of` a thing, "" for none), one for each of the keys `own`.

    `codes` maps the variables that it depends on to arrays of codes.
    """
    table = household_tables().get(name) or tables()[name]
    return table.draw(codes, draws(own, f"{name} {of}" if of else name))


def _type(members: list[_Member], sex: Codes, size: Codes) -> Codes:
    """Return an array of codes of HHT, one a household: couples, then families by the householder's `sex`, then others.

    `members` has the `_Member`s, the householder first, whose arrays have an entry a household, as `sex` and `size`.
    """
    family = np.any([member.there for member in members[2 : 2 + CHILDREN + 2]], axis=0)
    married = members[1].there & (members[1].married == MARRIED)
    kin = np.where(sex == 0, 1, 2)
    apart = np.where(sex == 0, np.where(size == 1, 3, 4), np.where(size == 1, 5, 6))
    return np.where(married, 0, np.where(family, kin, apart))


def _table(of: object, codes: Mapping[str, Codes], key: str, numbers: Codes, order: Codes | None = None) -> pa.Table:
    """Return an Arrow table: column `key` of `numbers`, SPORDER of `order` if not None, then the columns of a Schema.

    That is `of`; `codes` maps its columns to arrays, of levels' codes or numbers. `numbers` and `order` are arrays, an
    entry a row.
    """
    import pyarrow as pa

    from stratsynth.schema import Categorical, Schema

    assert isinstance(of, Schema)  # noqa: S101 - told apart late, as schemas are heavy to import
    arrays, fields = [pa.array(numbers.astype(np.int64))], [pa.field(key, pa.int64(), nullable=False)]
    if order is not None:
        arrays.append(pa.array(order.astype(np.int64)))
        fields.append(pa.field("SPORDER", pa.int64(), nullable=False))
    for name, column in of.columns.items():
        if isinstance(column, Categorical):
            array = pa.array(column.levels, pa.string()).take(pa.array(codes[name]))
        elif column.missing:
            array = pa.array(codes[name].astype(np.float64), mask=codes[name] == ABSENT[name])
        else:
            array = pa.array(codes[name].astype(np.int64))
        arrays.append(array)
        fields.append(pa.field(name, array.type, nullable=pa.types.is_floating(array.type)))
    return pa.table(arrays, schema=pa.schema(fields))
