"""Simulated files in the Census Bureau's forms: person records, zip files, a data dictionary."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

DICTIONARY = """\
NAME,RT,C,1,"Record Type"
VAL,RT,C,1,"P","P","Person Record"
NAME,SEX,C,1,"Sex"
VAL,SEX,C,1,"1","1","Male"
VAL,SEX,C,1,"2","2","Female"
NAME,HIMRKS,C,1,"Subsidized Marketplace Coverage"
VAL,HIMRKS,C,1,"b","b","N/A (nobody)"
VAL,HIMRKS,C,1,"0","0","Ineligible, so far"
VAL,HIMRKS,C,1,"1","1","With subsidy"
NAME,POBP,C,3,"Place of birth (Recode)"
VAL,POBP,C,3,"001","001","Alabama/AL"
VAL,POBP,C,3,"042","042","Pennsylvania/PA"
VAL,POBP,C,3,"303","303","Mexico"
NAME,JWMNP,N,3,"Travel time to work"
VAL,JWMNP,N,3,bbb,bbb,"N/A (not a worker or worker who worked at home)"
VAL,JWMNP,N,3,1,200,"1 to 200 minutes to get to work (Top-coded)"
VAL,JWMNP,N,3,888,888,"Suppressed for data year 2023 for select PUMAs"
NAME,YOEP,N,4,"Year of entry"
VAL,YOEP,N,4,1938,2023,"A year"
"""


def people(rows: int, year: int, state: str = "42", seed: int = 0) -> pd.DataFrame:
    """Person records of a year, spelt as in its file; blank where a question does not apply."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 95, rows)

    def asked(least: int, values: object) -> np.ndarray:
        return np.where(age >= least, np.asarray(values, object), "")

    old = year <= 2018
    work = rng.choice(["1", "2", "3", "6"], rows)
    frame = {
        "RT": "P",
        "SERIALNO": [f"{year}HU{i:07}" if year >= 2018 else f"{i:07}" for i in range(rows)],
        "SPORDER": "01",
        "PUMA": rng.choice(["00100", "00200"], rows),
        "STATE" if year >= 2023 else "ST": state,
        "PWGTP": rng.integers(1, 200, rows),
        "AGEP": age,
        "SEX": rng.choice(["1", "2"], rows),
        "RAC1P": rng.choice(list("1269"), rows, p=[0.7, 0.15, 0.1, 0.05]),
        "SCHL": asked(3, rng.choice(["01", "16", "21"], rows)),
        "MAR": asked(15, rng.choice(list("135"), rows)),
        "RELP" if old else "RELSHIPP": rng.choice(["00", "01"] if old else ["20", "21"], rows),
        "DIS": rng.choice(["1", "2"], rows),
        "ESP": "",
        "CIT": "1",
        "MIG": asked(1, rng.choice(["1", "3"], rows)),
        "MIL": asked(17, rng.choice(["2", "4"], rows)),
        "ANC": rng.choice(list("124"), rows),
        "NATIVITY": "1",
        "DEAR": "2",
        "DEYE": "2",
        "DREM": asked(5, rng.choice(["1", "2"], rows)),
        "ESR": asked(16, work),
        "PINCP": asked(15, rng.integers(0, 900, rows) * 100),
        "OCCP": asked(16, rng.choice(["0010", "4720", "9130"], rows)),
        "COW": asked(16, "1"),
        "POBP": "042",
        "WKHP": asked(16, rng.integers(1, 80, rows)),
        "PWGTP1": 1,
    }
    frame["MAR"] = np.where(frame["MAR"] == "", "5", frame["MAR"])
    frame["DIS"] = np.where(frame["DREM"] == "1", "1", frame["DIS"])
    return pd.DataFrame(frame)


def households(rows: int, year: int, state: str = "42", seed: int = 0) -> pd.DataFrame:
    """Household records of a year, spelt as in its file: some vacant, some group quarters, all others with persons."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["1", "2", "3"], rows, p=[0.9, 0.05, 0.05])
    size = np.where(kind == "1", rng.integers(0, 5, rows), 1)
    lived = (kind == "1") & (size > 0)
    types = np.where(size > 1, rng.choice(list("12357"), rows), rng.choice(list("46"), rows))

    def asked(values: object, mask: np.ndarray = lived) -> np.ndarray:
        return np.where(mask, np.asarray(values, object), "")

    frame = {
        "RT": "H",
        "SERIALNO": [f"{year}HU{i:07}" if year >= 2018 else f"{i:07}" for i in range(rows)],
        "STATE" if year >= 2023 else "ST": state,
        "PUMA": rng.choice(["00100", "00200"], rows),
        "TYPEHUGQ" if year >= 2020 else "TYPE": kind,
        "WGTP": rng.integers(0, 200, rows),
        "NP": size,
        "BLD": asked(rng.choice(["01", "02", "10"], rows), kind == "1"),
        "TEN": asked(rng.choice(list("1234"), rows)),
        "HHT": asked(types),
        "HINCP": asked(rng.integers(-5, 3000, rows) * 100),
        "WGTP1": 1,
    }
    return pd.DataFrame(frame)


def csv(path: Path, rows: int, year: int, **keys: object) -> Path:
    """A CSV file of people."""
    path.parent.mkdir(parents=True, exist_ok=True)
    people(rows, year, **keys).to_csv(path, index=False)
    return path


def archive(path: Path, name: str, rows: int, year: int, **keys: object) -> Path:
    """A zip file with them, and with a readme, as the Bureau's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ACS_PUMS_README.pdf", b"%PDF")
        file.writestr(name, people(rows, year, **keys).to_csv(index=False))
    return path
