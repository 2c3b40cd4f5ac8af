"""The ACS excerpt of NIST (Diverse Communities Data Excerpts, 2019, national): its 20 columns as a schema.

The file itself is not part of this project; benchmarks are given its path. Levels are those of its published
dictionary; N means not applicable. INDP, PINCP, PWGTP and WGTP are left out, as others' figures leave them out.
"""

from __future__ import annotations

from stratsynth.schema import Categorical, Column, Numeric, Schema

_AREAS = (
    "01-01301 06-07502 06-08507 08-00803 13-04600 17-03529 17-03531 19-01700 24-01004 26-02702 28-01100 29-01901 "
    "30-00600 32-00405 36-03710 36-04010 38-00100 40-00200 51-01301 51-51255"
)


def schema() -> Schema:
    """Ages in steps of six years, poverty ratios in steps of 50 percent, densities in steps that double."""

    def coded(first: int, last: int, *, applicable: bool = True) -> Categorical:
        levels = tuple(str(i) for i in range(first, last + 1))
        return Categorical(levels=levels) if applicable else Categorical(levels=("N", *levels), not_applicable="N")

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
