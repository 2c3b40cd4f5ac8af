"""Real data to measure on: the ACS excerpt of NIST (2019, national), and person records of the ACS itself.

The files themselves are not part of this project; benchmarks are given their paths. The excerpt's levels are those of
its published dictionary; N means not applicable. INDP, PINCP, PWGTP and WGTP are left out, as others' figures leave
them out.
"""

from __future__ import annotations

from stratsynth.schema import Categorical, Column, Numeric, Schema

_AREAS = (
    "01-01301 06-07502 06-08507 08-00803 13-04600 17-03529 17-03531 19-01700 24-01004 26-02702 28-01100 29-01901 "
    "30-00600 32-00405 36-03710 36-04010 38-00100 40-00200 51-01301 51-51255"
)


def coded(first: int, last: int, *, applicable: bool = True) -> Categorical:
    """The levels from `first` to `last`, and N before them unless everybody has one."""
    levels = tuple(str(i) for i in range(first, last + 1))
    return Categorical(levels=levels) if applicable else Categorical(levels=("N", *levels), not_applicable="N")


def excerpt() -> Schema:
    """Ages in steps of six years, poverty ratios in steps of 50 percent, densities in steps that double."""
    children = Categorical(levels=("N", *map(str, range(8)), "9"), not_applicable="N")
    columns: dict[str, Column] = {
        "PUMA": Categorical(levels=tuple(_AREAS.split())),
        "AGEP": Numeric(lower=0, upper=95, integer=True, edges=tuple(range(0, 97, 6))),
        "SEX": coded(1, 2),
        "MSP": coded(1, 6, applicable=False),
        "HISP": coded(0, 4),
        "RAC1P": coded(1, 9),
        "NOC": children,
        "NPF": coded(2, 12, applicable=False),
        "HOUSING_TYPE": coded(1, 3),
        "OWN_RENT": coded(0, 2),
        "DENSITY": Numeric(lower=0, upper=60_000, edges=(0, 50, 150, 500, 1000, 2000, 3000, 5000, 60_000)),
        "INDP_CAT": coded(0, 18, applicable=False),
        "EDU": coded(1, 12, applicable=False),
        "PINCP_DECILE": coded(0, 9, applicable=False),
        "POVPIP": Numeric(lower=0, upper=501, integer=True, not_applicable="N", edges=(*range(0, 501, 50), 501, 502)),
        "DVET": coded(1, 6, applicable=False),
        "DREM": coded(1, 2, applicable=False),
        "DPHY": coded(1, 2, applicable=False),
        "DEYE": coded(1, 2),
        "DEAR": coded(1, 2),
    }
    return Schema(columns)


def pums() -> Schema:
    """Person records of the Census Bureau's 1-year files: 23 columns; empty fields are not applicable."""

    def binned(*edges: float) -> Numeric:
        return Numeric(lower=edges[0], upper=edges[-1], not_applicable="N", edges=edges)

    incomes = (0, 5e3, 1e4, 1.5e4, 2e4, 3e4, 4e4, 5e4, 6e4, 7.5e4, 1e5, 1.5e5, 2e5)
    columns: dict[str, Column] = {
        "AGEP": Numeric(lower=0, upper=99, integer=True, edges=(*range(0, 90, 6), 90, 100)),
        "SEX": coded(1, 2),
        "RAC1P": coded(1, 9),
        "CIT": coded(1, 5),
        "NATIVITY": coded(1, 2),
        "LANX": coded(1, 2, applicable=False),
        "ENG": coded(1, 4, applicable=False),
        "SCHL": coded(1, 24, applicable=False),
        "MAR": coded(1, 5),
        "ESR": coded(1, 6, applicable=False),
        "COW": coded(1, 9, applicable=False),
        "WKHP": binned(1, 10, 20, 30, 35, 40, 41, 50, 60, 100),
        "JWMNP": binned(1, 10, 15, 20, 30, 45, 60, 90, 200),
        "JWTRNS": coded(1, 12, applicable=False),
        "PINCP": binned(-2e4, *incomes, 5e6),
        "POVPIP": binned(*range(0, 501, 50), 502),
        "HICOV": coded(1, 2),
        "PRIVCOV": coded(1, 2),
        "PUBCOV": coded(1, 2),
        "DIS": coded(1, 2),
        "DREM": coded(1, 2, applicable=False),
        "DPHY": coded(1, 2, applicable=False),
        "MIL": coded(1, 4, applicable=False),
    }
    return Schema(columns)


def twelve() -> Schema:
    """The twelve columns of GEM's figures: ages in nine groups; nothing about places, families and houses."""
    gone = ("PUMA", "NOC", "NPF", "HOUSING_TYPE", "DENSITY", "POVPIP", "DVET", "DEAR")
    ages = Numeric(lower=0, upper=95, integer=True, edges=(0, 6, 18, 25, 35, 45, 55, 65, 75, 96))
    return Schema({**excerpt().without(gone).columns, "AGEP": ages})
