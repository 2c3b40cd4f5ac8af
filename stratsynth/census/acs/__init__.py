"""Public-use records of the American Community Survey, persons and households, 2014 to 2024: schemas, loading, shares.

    from stratsynth.census import acs

    schema = acs.schema(task="ACSEmployment", year=2018)             # a task of folktables
    schema = acs.schema(["AGEP", "SEX", "OCCP"], year=2024)          # or any columns
    both = acs.linked_schema(year=2024)                              # of households with their persons
    acs.load("ny.parquet", state="NY", year=2018)                    # the Bureau's file, verified
    shares = acs.shares("earlier.csv", ["SEX", "RAC1P"], year=2017)  # weighted by PWGTP

Meanings of columns are in `columns.toml`, code lists in `codes.toml`, structural rules in `rules.toml`, tasks in
`tasks.toml`. All of it is public; nothing is read from private rows.
"""

from __future__ import annotations

from stratsynth.census.acs.catalogue import tasks
from stratsynth.census.acs.check import Checked, check
from stratsynth.census.acs.linked import linked_schema
from stratsynth.census.acs.load import Loaded, load
from stratsynth.census.acs.make import Made, make, schema
from stratsynth.census.acs.shares import Shares, shares

__all__ = ["Checked", "Loaded", "Made", "Shares", "check", "linked_schema", "load", "make", "schema", "shares", "tasks"]
