"""Two linked tables for tests: households with 1 to 9 persons, made up."""

import numpy as np
import pandas as pd

import stratsynth as ss
from stratsynth.data.linked_rows import read_linked, slots_of
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import AnswerSource
from stratsynth.schema.kinds import ParentKind
from stratsynth.schema.linked import ChildCount, ChildSum, LinkedSchema

HOUSEHOLD = ss.Schema(
    {
        "TEN": ss.Categorical(levels=("1", "2")),
        "HINCP": ss.Numeric(-10_000, 200_000, integer=True, bins=6),
        "KIND": ss.Categorical(levels=("1", "2")),
    }
)
PERSON = ss.Schema(
    {
        "AGEP": ss.Numeric(0, 99, integer=True, edges=(0, 5, 18, 30, 45, 65, 100)),
        "SEX": ss.Categorical(levels=("1", "2")),
        "PINCP": ss.Numeric(-5_000, 100_000, integer=True, bins=5, missing=True),
    }
)
SCHEMA = LinkedSchema(
    parent=HOUSEHOLD,
    child=PERSON,
    key="SERIALNO",
    order="SPORDER",
    most=9,
    derived={
        "NP": ChildCount(top=6),
        "N18": ChildCount(where={"AGEP": "..17"}, besides_reference=True, top=3),
        "HINCP": ChildSum(column="PINCP"),
    },
    difference="AGEP",
    occupied={"KIND": ("1",)},
)
OF_KINDS = LinkedSchema(
    parent=ss.Schema(
        {
            "KIND": ss.Categorical(levels=("1", "2", "3", "4")),
            "TEN": ss.Categorical(levels=("1", "2")),
            "AREA": ss.Categorical(levels=("n", "s")),
            "VACS": ss.Categorical(levels=("rent", "sale", "other")),
        }
    ),
    child=ss.Schema({"AGEP": PERSON.columns["AGEP"], "SEX": PERSON.columns["SEX"]}),
    key="SERIALNO",
    order="SPORDER",
    most=9,
    derived={"NP": ChildCount(top=6), "N18": ChildCount(where={"AGEP": "..17"}, besides_reference=True, top=3)},
    difference="AGEP",
    occupied={"KIND": ("1",)},
    kinds={
        "vacant": ParentKind(levels=("2",), columns=("AREA", "VACS")),
        "quarters": ParentKind(levels=("3", "4"), columns=("AREA",), single=True),
    },
    absent=("VACS",),
)
"""Three kinds of parents with columns of their own: with child rows, vacant without, and of one child row each."""
PLAIN = LinkedSchema(
    parent=ss.Schema({"TEN": ss.Categorical(levels=("1", "2"))}),
    child=ss.Schema({"SEX": ss.Categorical(levels=("1", "2"))}),
    key="SERIALNO",
    order="SPORDER",
    most=5,
)
"""The least that two linked tables have: a column each, and the number of child rows, which is added."""


def tables(n=300, seed=0):
    """Return (households, persons) of n households whose persons lie in any order."""
    rng = np.random.default_rng(seed)
    size = rng.choice([1, 2, 3, 4, 5, 9], n, p=[0.3, 0.3, 0.17, 0.13, 0.07, 0.03])
    parents = pd.DataFrame({"SERIALNO": np.arange(n), "TEN": rng.integers(1, 3, n), "HINCP": 0, "KIND": 1})
    owner = np.repeat(np.arange(n), size)
    place = np.concatenate([np.arange(each) for each in size])
    age = np.where(place < 2, rng.integers(20, 90, n)[owner], rng.integers(0, 25, len(owner)))
    income = np.where(age < 15, np.nan, rng.gamma(2, 10_000, len(owner)).round())
    persons = {"SERIALNO": owner, "SPORDER": place + 1, "AGEP": age, "SEX": 1 + place % 2, "PINCP": income}
    return parents, pd.DataFrame(persons).sample(frac=1, random_state=seed).reset_index(drop=True)


def tables_of_kinds(n=300, seed=0):
    """Return (households, persons) of n units: three in five occupied, others vacant, or quarters of one person."""
    parents, persons = tables(n, seed)
    rng = np.random.default_rng(seed + 1)
    kind = rng.choice([1, 2, 3, 4], n, p=[0.6, 0.15, 0.15, 0.1])
    parents = parents.drop(columns=["HINCP"]).assign(KIND=kind, AREA=rng.choice(["n", "s"], n))
    parents["TEN"] = parents["TEN"].where(kind == 1).astype("Int64")
    parents["VACS"] = np.where(kind == 2, rng.choice(["rent", "sale", "other"], n), None)
    own = kind[persons["SERIALNO"]]
    return parents, persons[(own == 1) | ((own > 2) & (persons["SPORDER"] == 1))].drop(columns=["PINCP"])


def slots(parents, persons, schema=SCHEMA):
    """Return the counted tables of two frames, by name: codes, owner and weight of their rows."""
    return slots_of(schema, *(open_source(each).all_columns() for each in (parents, persons)), 60)


def rows(parents, persons, schema=SCHEMA):
    """Return the rows of two frames as the driver counts them."""
    return read_linked(schema.counted, open_source(parents), open_source(persons))


def lines(found):
    """Return each counted table as a sorted list of rows, codes with their weight; whose they are is left out."""
    return {
        slot: sorted(zip(*(each.codes[name].tolist() for name in each.codes), each.weight.tolist(), strict=True))
        for slot, each in found.items()
    }


RECIPE = """[data]
parent = "households.csv"
child = "persons.csv"
schema = "homes.toml"
declared_size = 300

[mechanism]
name = "linked"
base = "mst"

[budget]
epsilon = 4
delta = 1e-9
ledger = "homes.ledger"

[release]
rows = 70
seed = 1
"""
"""Recipe of a fit of 300 households and their persons, from two files."""


class Recorder(AnswerSource):
    """Answers of another source, or given ones, with the questions that they answer."""

    def __init__(self, answers, given=None):
        self.answers, self.given, self.asked, self.replies = answers, given, [], []

    def __call__(self, asked):
        found = self.answers(asked)
        if self.given is not None:
            found = self.given[len(self.replies)]
        self.asked.append(list(asked))
        self.replies.append(found)
        return found
