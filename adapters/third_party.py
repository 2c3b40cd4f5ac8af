"""Known third-party synthesizers for `External`: level numbers in, level numbers out, the declared domain given.

Their privacy is theirs to prove: nothing here is verified. None of them installs together with this package's own
requirements, so there is no extra for them: they need an environment of their own, into which this package goes by `pip
install --no-deps`, with pyarrow (below 22 beside dpmm), rich, tomli_w and typer.

Their noise covers a record that is added or removed. Where the row count is taken as public, the promise is about
exchanging one record for another, two such steps, so that each gets at most half of epsilon.
"""

from __future__ import annotations

import math
from importlib import metadata
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.accounting.zcdp import rho_of
from stratsynth.adapters.external import External, Synthesizer
from stratsynth.errors import UsageError, nearest

if TYPE_CHECKING:
    import pandas as pd


def dpmm_mst(frame: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float, rows: int) -> pd.DataFrame:
    """Return a frame of `rows` synthetic rows, as level numbers, by MST of dpmm 0.1.9 fitted to `frame`.

    `sizes` are the numbers of levels by column; it gets epsilon and delta. The pipeline drops the columns that are
    constant in the private rows. Known: its choices come from a Mersenne twister, its noise is a float. It estimates
    the number of rows from noisy tables, but promises nothing about it, so it is treated as if it took the number as
    public.
    """
    from dpmm.models.mst import MSTGM

    half, smaller = _step(epsilon, delta)
    model = MSTGM(epsilon=half, delta=smaller, domain=sizes, n_jobs=1)
    model.set_domain(sizes)
    model.fit(frame)
    drawn: pd.DataFrame = model.generate(n_records=rows)
    return drawn.astype(np.int64)


def smartnoise_mst(frame: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float, rows: int) -> pd.DataFrame:
    """Return a frame of `rows` synthetic rows, as level numbers, by MST of smartnoise-synth 1.0.8 fitted to `frame`.

    All levels of `sizes` are declared to its encoder. It is given half of epsilon and delta / (1 + exp(epsilon / 2)),
    so that replacing a row keeps (epsilon, delta).

    Known: it fits to the exact number of rows and fails on none, its choices come from a Mersenne twister, its noise is
    a float, and it draws rows by mbi 1.1.0's rounding, which distorts the pairs.
    """
    from snsynth.mst import MSTSynthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    encoders = [LabelTransformer(nullable=False) for _ in sizes]
    for encoder, size in zip(encoders, sizes.values(), strict=True):
        encoder.fit(list(range(size)))
    model = MSTSynthesizer(*_step(epsilon, delta))
    model.fit(frame, transformer=TableTransformer(encoders))
    drawn: pd.DataFrame = model.sample(rows)
    return drawn.astype(np.int64)


def opendp_mst(frame: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float, rows: int) -> pd.DataFrame:
    """Return a frame of `rows` synthetic rows, as level numbers, by MST of OpenDP 0.16.0 fitted to `frame`.

    It gets epsilon and delta. Every level of `sizes`, numbers by column, is declared as a bin of its own, without a
    null level. The number of rows is estimated from noisy tables. Two contributions are declared, which covers an
    exchanged record as well as one added or removed.
    """
    import opendp.prelude as dp
    import pandas as pd
    import polars as pl
    from opendp.extras.mbi import MST

    dp.enable_features("contrib")
    names = {f"c{i}": name for i, name in enumerate(sizes) if sizes[name] > 1}  # "len" is a reserved name there
    loss = dp.loss_of(rho=rho_of(epsilon, delta))
    data = pl.LazyFrame({short: frame[name].to_numpy() for short, name in names.items()})
    context = dp.Context.compositor(data=data, privacy_unit=dp.unit_of(contributions=2), privacy_loss=loss)
    cuts = {short: list(range(sizes[name] - 1)) for short, name in names.items()}
    query = context.query(rho=rho_of(epsilon, delta)).select(*names)
    drawn = query.contingency_table(cuts=cuts, algorithm=MST()).release().synthesize(rows, method="sample")
    back = {name: short for short, name in names.items()}
    zero = np.zeros(rows, dtype=np.int64)  # a column of one level
    return pd.DataFrame({name: drawn[back[name]].to_numpy() if name in back else zero for name in sizes})


KNOWN: dict[str, tuple[Synthesizer, dict[str, str], bool]] = {
    "dpmm-mst": (dpmm_mst, {"dpmm": "0.1."}, True),
    "smartnoise-mst": (smartnoise_mst, {"smartnoise-synth": "1.0.", "mbi": "1."}, True),
    "opendp-mst": (opendp_mst, {"opendp": "0.16.", "mbi": "1.", "polars": "1."}, False),
}
"""Function, packages with the beginnings of their versions, and True if it takes the row count as public; by name."""


def known(name: str, *, rows: int | None = None) -> External:
    """Return the mechanism, an `External`, of the synthesizer `name` of `KNOWN` for `rows` rows (None: declared).

    UsageError for other names, and packages of other versions.
    """
    if name not in KNOWN:
        raise UsageError(f"third party: no {name!r}{nearest(name, KNOWN)}. There are: {', '.join(KNOWN)}.")
    synthesizer, packages, counts_rows = KNOWN[name]
    versions = {package: _version(package) for package in packages}
    for package, tried in packages.items():
        if not versions[package].startswith(tried):
            raise UsageError(
                f"third party: {name} needs {package} {tried}*, and {versions[package] or 'none'} is installed. "
                "It wants an environment of its own; adapters/third_party.py says how."
            )
    return External(synthesizer, f"MST of {', '.join(map(' '.join, versions.items()))}", counts_rows, rows)


def _version(package: str) -> str:
    """Return the text of an installed package's version; "" if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _step(epsilon: float, delta: float) -> tuple[float, float]:
    """Return (epsilon, delta) of adding or removing one row, such that two such steps satisfy these epsilon, delta."""
    return epsilon / 2, delta / (1 + math.exp(min(epsilon, 100) / 2))
