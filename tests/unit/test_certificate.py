"""The certificate as types: nothing is lost, a wrong key is named, and the JSON Schema in docs/ is the present one."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from helpers.certificates import record
from stratsynth.adapters import MST, Independent
from stratsynth.certificate import FORMAT, Certificate, json_schema
from stratsynth.errors import ReleaseError
from stratsynth.release.certificate import read_certificate
from stratsynth.release.page.summary import summary

ROOT = Path(__file__).parents[2]
OLD = sorted((ROOT / "tests/golden/written_by_0_1_0").glob("*/certificate.json"))
NONE = (None, [], {})


def leaves(value, path=()):
    """Every value of a JSON document that says something, by the keys that lead to it."""
    if isinstance(value, dict) and value:
        return {k: v for name, item in value.items() for k, v in leaves(item, (*path, name)).items()}
    if isinstance(value, list) and value:
        return {k: v for place, item in enumerate(value) for k, v in leaves(item, (*path, place)).items()}
    return {} if value in NONE else {path: value}


@pytest.fixture(scope="module")
def certificates():
    """Of fits of several kinds, with strata, small groups, weights that were measured, and a private unit."""
    table, even = small.table(), small.even(small.SCHEMA, "SEX")
    fits = [
        Independent(),
        ss.Stratified(MST(), by=["SEX"], weights=even),
        ss.Stratified(Independent(), by=["SEX"], weights=ss.Weights.private(share=0.1)),
    ]
    return [ss.fit(how, table, small.BUDGET, seed=1).certificate for how in fits]


def test_nothing_that_is_written_is_lost_when_it_is_read(certificates):
    assert len(OLD) == 5
    for found in [*map(dict, certificates), *(json.loads(path.read_text(encoding="utf-8")) for path in OLD)]:
        again = json.loads(json.dumps(Certificate.from_dict(found).to_dict()))
        assert leaves(found).items() <= leaves(again).items()
        assert Certificate.from_dict(again) == Certificate.from_dict(found)


def test_a_release_has_it_typed_and_as_json():
    release = ss.fit(Independent(), small.table(), small.BUDGET, seed=1)
    assert release.statement.guarantee.epsilon == release.certificate["guarantee"]["epsilon"] == small.BUDGET.epsilon
    assert release.statement.strata.by == ()
    assert release.statement.answers == len(release.certificate["charges"])
    assert isinstance(release.statement, ss.Certificate)
    assert json.loads(json.dumps(release.certificate)) == release.certificate


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"guarantee": {"delta": "0"}}, "guarantee.delta"),
        ({"guarantee": {"epsilon": 0}}, "guarantee.epsilon"),
        ({"guarantee": {"epsilon": True}}, "guarantee.epsilon"),
        ({"prices": {"add-remove": -1}}, "prices"),
        ({"unit": {"column": "AGE", "max_rows": 0}}, "unit.max_rows"),
        ({"unit": 3}, "unit"),
        ({"charges": "none"}, "charges"),
        ({"charges": [{"kind": "counts", "path": [], "sensitivity": {"replace": "1"}}]}, "charges[0].sensitivity"),
        ({"strata": {"merged": [{"stratum": "a"}]}}, "strata.merged[0]"),
        ({"unprotected": "nothing"}, "unprotected"),
        ({"declared_and_measured": [{"what": "share"}]}, "declared_and_measured[0]"),
        ({"files": {"synthetic.parquet": 1}}, "files"),
        ({"software": {"stratsynth": None}}, "software.stratsynth"),
        ({"format": "stratsynth-certificate/2"}, "format"),
    ],
)
def test_what_is_none_is_refused_by_its_key(change, key, tmp_path):
    wrong = record(**change)
    with pytest.raises(ValueError, match=r"expected|missing|invalid") as refused:
        Certificate.from_dict(wrong)
    assert str(refused.value).startswith(key)
    (tmp_path / "certificate.json").write_text(json.dumps(wrong), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"damaged|not a certificate of format"):
        read_certificate(tmp_path)


@pytest.mark.parametrize("key", [k for k in record() if k not in ("warning", "files")])
def test_a_key_of_every_version_may_not_be_missing(key):
    rest = {k: v for k, v in record().items() if k != key}
    with pytest.raises(ValueError, match=rf"missing required field {key}"):
        Certificate.from_dict(rest)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**12) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(record())), JSON)
def test_whatever_stands_under_a_key_it_is_read_or_refused(key, value):
    with contextlib.suppress(ValueError):  # and nothing else
        assert Certificate.from_dict({**record(), key: value}).format == FORMAT


def test_a_step_that_is_none_is_shown_by_its_name_and_a_price_beyond_all_numbers_refused():
    assert "replaae" in summary(record(prices={"replaae": 1.0}))
    charges = [{**charge, "sensitivity": {"add-remove": 5e-324, "replace": 1e308}} for charge in record()["charges"]]
    with pytest.raises(ReleaseError, match="the certificate is damaged"):
        summary(record(charges=charges))


def test_keys_of_later_versions_are_passed_over():
    assert Certificate.from_dict(record(later={"a": 1})) == Certificate.from_dict(record())


def test_sections_cannot_be_changed():
    with pytest.raises(AttributeError):
        Certificate.from_dict(record()).guarantee.epsilon = 9.0


def test_the_schema_in_the_documents_is_the_present_one():
    """Made by `python -m stratsynth.certificate > docs/certificate.schema.json`."""
    kept = json.loads((ROOT / "docs/certificate.schema.json").read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(json_schema()))


def test_the_schema_describes_every_section():
    described = json_schema()["$defs"]
    assert {"Certificate", "Guarantee", "ChargeStated", "PriorStated"} <= set(described)
    assert all(section["description"] for section in described.values())
