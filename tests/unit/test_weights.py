import pandas as pd
import pytest

from helpers.small import SCHEMA, SHARES, shares_frame
from stratsynth import Weights
from stratsynth.errors import WeightsError
from stratsynth.strata import Stratum, crossing

STRATA = crossing(SCHEMA, ["SEX", "GROUP"])
HEADER = "SEX,GROUP,share\n"
GOOD = "1,a,0.4\n1,b,0.1\n2,a,0.5\n2,b,0\n"


def public(text, tmp_path):
    path = tmp_path / "shares.csv"
    path.write_text(text, encoding="utf-8")
    return Weights.public(path, citation="a table")


def by_label(weights):
    return {stratum.label: share for stratum, share in weights.resolve(STRATA).shares.items()}


EXPECTED = {f"{s}|{g}": w for (s, g), w in SHARES.items()}


def test_shares_of_a_file(tmp_path):
    assert by_label(public(HEADER + GOOD, tmp_path)) == pytest.approx(EXPECTED)


def test_shares_of_a_frame_with_numbers_for_levels():
    frame = shares_frame()
    assert by_label(Weights.public(frame.assign(SEX=frame["SEX"].astype(float)), citation="made up")) == pytest.approx(
        EXPECTED
    )
    assert by_label(Weights.public(frame.assign(SEX=frame["SEX"].astype(int)), citation="made up")) == pytest.approx(
        EXPECTED
    )


def test_rows_and_columns_may_come_in_any_order(tmp_path):
    frame = shares_frame().iloc[::-1, ::-1]
    assert by_label(Weights.public(frame, citation="made up")) == pytest.approx(EXPECTED)
    assert list(Weights.public(frame, citation="made up").resolve(STRATA).shares) == list(STRATA)


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path):
    assert by_label(public("\ufeff" + HEADER + GOOD, tmp_path)) == pytest.approx(EXPECTED)


def test_shares_that_miss_one_by_a_rounding_are_scaled_and_it_is_said(tmp_path):
    resolved = public(HEADER + GOOD.replace("0.5", "0.5009"), tmp_path).resolve(STRATA)
    assert resolved.total == pytest.approx(1.0009)
    assert sum(resolved.shares.values()) == pytest.approx(1, abs=1e-15)
    assert resolved.shares[Stratum.of({"SEX": "1", "GROUP": "a"})] == pytest.approx(0.4 / 1.0009)
    # 1.001 is the most that is let through, also where its float is a little more
    assert public(HEADER + GOOD.replace("0.5", "0.501"), tmp_path).resolve(STRATA).total == pytest.approx(1.001)


REFUSED = {
    "too much": (GOOD.replace("0.5", "0.502"), "add up to"),
    "too little": (GOOD.replace("0.5", "0.498"), "add up to"),
    "a stratum without a share": (GOOD.replace("1,b,0.1\n", "").replace("0.5", "0.6"), "SEX=1 GROUP=b"),
    "an unknown stratum": (GOOD + "3,a,0\n", "SEX=3"),
    "a stratum twice": (GOOD + "1,a,0\n", "two shares"),
    "a negative share": (GOOD.replace("2,b,0", "2,b,-0.1").replace("0.5", "0.6"), "line 5"),
    "a share that is a word": (GOOD.replace("0.1", "many"), "line 3"),
    "a share that is NaN": (GOOD.replace("0.1", "nan"), "line 3"),
    "a share that is infinite": (GOOD.replace("0.1", "inf"), "line 3"),
    "an empty share": (GOOD.replace("0.1", ""), "line 3"),
    "a line cut short": (GOOD.replace("1,b,0.1", "1,b"), "line 3"),
    "a line too long": (GOOD.replace("1,b,0.1", "1,b,0.1,9"), "line 3"),
    "no shares": ("", "no lines"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_shares_are_refused_with_what_is_wrong(case, tmp_path):
    lines, match = REFUSED[case]
    with pytest.raises(WeightsError, match=match):
        public(HEADER + lines, tmp_path).resolve(STRATA)


@pytest.mark.parametrize("header", ["SEX,GROUP,shares\n", "SEX,share,other\n", "SEX,RACE,share\n"])
def test_other_columns_are_refused(header, tmp_path):
    with pytest.raises(WeightsError):
        public(header + GOOD, tmp_path).resolve(STRATA)


def test_a_misspelt_share_column_is_suggested(tmp_path):
    with pytest.raises(WeightsError, match="share"):
        public("SEX,GROUP,Share\n" + GOOD, tmp_path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(WeightsError, match=r"nowhere\.csv"):
        Weights.public(tmp_path / "nowhere.csv", citation="made up")


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "shares.csv"
    path.write_bytes(b"SEX,GROUP,share\n\xff\xfe\x00,a,1\n")
    with pytest.raises(WeightsError, match="UTF-8"):
        Weights.public(path, citation="made up")


@pytest.mark.parametrize("citation", ["", "  ", None, 3])
def test_public_shares_need_a_citation(citation):
    with pytest.raises(WeightsError, match="citation"):
        Weights.public(shares_frame(), citation=citation)


@pytest.mark.parametrize("shares", [None, [0.5, 0.5], 3])
def test_what_is_no_table_of_shares_is_refused(shares):
    with pytest.raises(WeightsError):
        Weights.public(shares, citation="made up")


def test_the_counts_of_a_private_frame_are_no_shares():
    """groupby().size() is the slip that would publish exact counts."""
    frame = pd.DataFrame({"SEX": ["1", "2"], "GROUP": ["a", "b"]})
    with pytest.raises(WeightsError):
        Weights.public(frame.groupby(["SEX", "GROUP"]).size(), citation="made up")
