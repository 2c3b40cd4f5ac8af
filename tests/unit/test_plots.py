"""Figures: of a release, of an evaluation, of a comparison; as files for papers, stamped where they are INTERNAL."""

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from stratsynth.adapters import Independent
from stratsynth.errors import StratsynthError
from stratsynth.evaluation import evaluate, plot_tradeoff
from stratsynth.evaluation.means.pictures import means_picture
from stratsynth.planning.plot import plot
from stratsynth.release.plots import shares


@pytest.fixture(scope="module")
def release():
    table = ss.open_table(small.people(80), schema=small.SCHEMA, declared_size=100)
    return ss.fit(Independent(), table, ss.Budget(1, 1e-9))


def words(figure):
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_every_column_is_drawn_with_the_shares_of_the_rows(release, tmp_path):
    figure = release.plot(tmp_path / "columns.pdf", seed=3)
    assert (tmp_path / "columns.pdf").read_bytes().startswith(b"%PDF")
    titled = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titled == list(small.SCHEMA.names)
    made = release.sample(100, seed=3)
    bars = [patch.get_height() for patch in figure.axes[0].patches]
    name = small.SCHEMA.names[0]
    known = made[name].astype(str).value_counts(normalize=True)
    assert sorted(bar for bar in bars if bar) == pytest.approx(sorted(known[known > 0]))
    assert "INTERNAL" not in words(figure)


def test_real_rows_beside_make_it_internal_and_no_part_of_a_release(release, tmp_path):
    real = small.people(80)
    figure = release.plot(tmp_path / "both.svg", real=real, columns=["SEX", "AGE"])
    assert "INTERNAL" in words(figure)
    assert "real" in words(figure)
    counted = shares(small.SCHEMA, real)["SEX"]
    heights = {round(patch.get_height(), 6) for patch in figure.axes[0].patches}
    assert set(np.round(counted, 6)) <= heights
    folder = release.save(tmp_path / "release")
    with pytest.raises(StratsynthError, match="INTERNAL output must be written elsewhere"):
        release.plot(folder / "both.pdf", real=real)
    with pytest.raises(StratsynthError, match="no column"):
        release.plot(columns=["NOBODY"])
    with pytest.raises(StratsynthError, match="exists already"):
        release.plot(tmp_path / "both.svg")
    with pytest.raises(StratsynthError, match="written as"):
        release.plot(tmp_path / "both.gif")


BILLS = ss.Schema(
    {
        "BILL": ss.Numeric(lower=0, upper=100_000, integer=True, edges=(0, 1, 10, 100, 1_000, 10_000, 100_001)),
        "AGE": ss.Numeric(lower=0, upper=100, edges=(0, 10, 100)),
    }
)


def test_bins_are_drawn_where_they_are_and_areas_are_shares():
    """users3, A.17: equally wide bins made a long tail look flat."""
    rng = np.random.default_rng(0)
    bills = np.where(rng.random(500) < 0.3, 0, np.exp(rng.normal(6, 2, 500))).clip(0, 1e5).astype(int)
    frame = pd.DataFrame({"BILL": bills, "AGE": np.where(rng.random(500) < 0.5, 5.0, 50.0)})
    with pytest.warns(ss.errors.NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=20, public=True, schema=BILLS, mechanism="independent")
    figure = release.plot(seed=1)
    assert "NOT PRIVATE" in words(figure) or "public" in words(figure)
    known = shares(BILLS, release.sample_arrow(500, seed=1))
    for axes, name in zip(figure.axes, BILLS.names, strict=False):
        data = axes.patches[0].get_data()
        assert np.diff(data.edges).min() > 0.009
        assert data.values * np.diff(data.edges) == pytest.approx(known[name])
    ages = figure.axes[1].patches[0].get_data()
    assert ages.edges == pytest.approx([0, 0.1, 1]), "to scale"
    assert ages.values[0] > 5 * ages.values[1], "a tenth as wide, and as many people"
    assert figure.axes[0].patches[0].get_data().edges[[0, -1]] == pytest.approx([0, 1])


def test_the_same_figure_is_the_same_file(release, tmp_path):
    for suffix in ("pdf", "svg"):
        for name in ("one", "two"):
            release.plot(tmp_path / f"{name}.{suffix}", seed=1)
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_plans_and_means_are_drawn_into_the_same_files(tmp_path):
    names = {"column": ["A", "A"], "stratum": ["", "SEX 1"], "status": ["ok", "small"]}
    table = pd.DataFrame({**names, "value": [1.0, 2.0], "lower": [0.5, 1.0], "upper": [1.5, 3.0]})
    for suffix in ("pdf", "svg"):
        for name in ("one", "two"):
            plot(Independent(), small.SCHEMA, ss.Budget(1, 1e-9), tmp_path / f"plan{name}.{suffix}", declared_size=100)
            means_picture(table, tmp_path / f"means{name}.{suffix}", internal=False)
        for kind in ("plan", "means"):
            one, two = (tmp_path / f"{kind}{name}.{suffix}" for name in ("one", "two"))
            assert one.read_bytes() == two.read_bytes()


def test_an_evaluation_draws_each_groups_error_beside_chance(release, tmp_path):
    found = evaluate(small.people(80), release.sample(80, seed=0), small.SCHEMA, ["SEX"], k=2, apart=False)
    figure = found.plot(tmp_path / "groups.pdf")
    assert "INTERNAL" in words(figure)
    for what in ("SEX 1", "SEX 2", "everybody", "chance alone", "release"):
        assert what in words(figure)
    drawn = {round(float(x), 6) for line in figure.axes[0].lines for x in line.get_xdata()}
    errors = found.workload[found.workload["table"].isin(["release", "subsample"])]["value"]
    assert set(np.round(errors, 6)) <= drawn
    folder = release.save(tmp_path / "release")
    with pytest.raises(StratsynthError, match="INTERNAL output"):
        found.plot(folder / "groups.pdf")


def compared(stamp="INTERNAL"):
    rows = [
        {
            "mechanism": m,
            "stratification": s,
            "epsilon": e,
            "seed": seed,
            "metric": "workload_error",
            "scope": scope,
            "group": group,
            "value": 1 / e + seed / 100,
            "stamp": stamp,
        }
        for m, s in (("mst", "vanilla"), ("mst", "SEX"))
        for e in (0.5, 2.0)
        for seed in (1, 2, 3)
        for scope, group in (("everybody", pd.NA), ("group", "1"))
    ]
    base = {**rows[0], "mechanism": "(subsample)", "stratification": "(baseline)", "epsilon": np.inf, "value": 0.25}
    return pd.DataFrame([*rows, base])


def test_the_trade_off_has_a_line_for_each_setting_and_the_error_of_chance(tmp_path):
    figure = plot_tradeoff(compared(), tmp_path / "tradeoff.svg")
    for what in ("mst, vanilla", "mst by SEX", "chance alone", "epsilon", "less is better", "INTERNAL"):
        assert what in words(figure)
    ys = [round(float(y), 6) for line in figure.axes[0].lines for y in line.get_ydata()]
    assert {2.02, 0.52, 0.25} <= set(ys)
    assert "group 1" in words(plot_tradeoff(compared(), group="1"))
    assert "INTERNAL" not in words(plot_tradeoff(compared("PUBLIC DATA")))
    with pytest.raises(StratsynthError, match="workload_error"):
        plot_tradeoff(compared(), metric="workload_eror")
    with pytest.raises(StratsynthError, match="no group"):
        plot_tradeoff(compared(), group="9")
