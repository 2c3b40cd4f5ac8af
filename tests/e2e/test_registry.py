"""`certificate --registry`: a record that the OpenDP deployments registry takes, with nothing in it invented."""

import json
import re
from pathlib import Path

import pytest

from helpers import small
from helpers.releases import edited, record_of, saved
from stratsynth import Budget, Release, cli
from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters import AIM, Independent
from stratsynth.adapters.means import ClippedMean
from stratsynth.noise import SeededEntropy

SCHEMA_FILE = Path(__file__).parents[3] / "shared" / "data" / "deployments_registry_schema.yaml"
PERSON = {
    "--name": "A made-up survey",
    "--slug": "made-up-survey-2024",
    "--curator": "Office of Examples",
    "--use": "testing: no more",
    "--region": "Nowhere",
    "--published": "2024-02-29",
    "--author": "A. Tester",
}
TEXT, NUMBER, TEXTS = "text", "number", "texts"
RECORD = {
    "url_slug!": TEXT,
    "status!": [
        "Converted",
        "Draft",
        "Pending",
        "Changes Required",
        "Approved",
        "Approved (Update Requested)",
        "Approved (Pending)",
    ],
    "tier!": [1, 2, 3],
    "deployment!": {
        "basic!": {
            "name!": TEXT,
            "data_curators!": TEXTS,
            "intended_use!": TEXT,
            "data_product_type!": [
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            ],
            "data_product_region!": TEXT,
            "description!": TEXT,
            "publication_date!": TEXT,
            "data_product_sector": ["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"],
        },
        "dp_variant": {
            "variant_name": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta": NUMBER, "rho": NUMBER},
        },
        "deployment_model": {
            "model_name": ["Local", "Central", "Shuffle", "Federated", "Varies"],
            "model_name_details": TEXT,
            "actors": TEXT,
            "release_type": ["One release", "Many releases"],
            "release_type_details": TEXT,
            "data_source_type": ["Static", "Dynamic"],
            "data_source_type_details": TEXT,
            "access_type": ["Interactive", "Non-interactive"],
            "access_type_details": TEXT,
        },
        "accounting": {"post_processing": TEXT, "composition": TEXT},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "justification": TEXT,
        },
        "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors!": TEXTS},
    },
}
"""The registry's schema: keys, those that are required with a mark, and what stands under them."""


def problems(found, wanted, where=""):
    """Faults of a document by the registry's schema: other keys, missing ones, kinds and words."""
    if isinstance(wanted, dict):
        known = {key.rstrip("!"): kind for key, kind in wanted.items()}
        yield from (f"{where}{key} is required" for key in wanted if key[-1] == "!" and key[:-1] not in found)
        yield from (f"{where}{key} is unknown" for key in found if key not in known)
        for key in found.keys() & known.keys():
            yield from problems(found[key], known[key], f"{where}{key}.")
    elif isinstance(wanted, list):
        if found not in wanted:
            yield f"{where} {found!r} is no word of the registry"
    elif wanted == TEXTS:
        if not isinstance(found, list) or not found or not all(isinstance(text, str) for text in found):
            yield f"{where} is no list of texts"
    elif type(found) not in ((str,) if wanted == TEXT else (int, float)):
        yield f"{where} is no {wanted}"


def read_yaml(text):
    """The part of YAML that a record is written in: tables by indent, lists, quoted texts, numbers."""
    stack = [(-1, {})]
    for line in text.splitlines():
        indent, rest = len(line) - len(line.lstrip()), line.strip()
        while stack[-1][0] >= indent:
            stack.pop()
        if rest.startswith("- "):
            above, key = stack[-1][1]
            if above[key] == {}:
                above[key] = []
            above[key].append(scalar(rest[2:]))
            continue
        key, colon, value = rest.partition(":")
        assert colon
        assert re.fullmatch("[a-z_]+", key)
        holder = stack[-1][1]
        holder = holder if isinstance(holder, dict) else holder[0][holder[1]]
        holder[key] = scalar(value.strip()) if value else {}
        if not value:
            stack.append((indent, (holder, key)))
    return stack[0][1]


def scalar(text):
    if text[0] != '"':
        assert re.fullmatch(r"-?\d+|-?\d+\.\d*(e[-+]\d+)?", text), text  # numbers of YAML 1.1 too
    return json.loads(text)


def options(**instead):
    given = {**PERSON, **{f"--{key}": value for key, value in instead.items()}}
    return [part for key, value in given.items() if value is not None for part in (key, value)]


def asked(folder, capsys, *arguments):
    code = cli.run(["certificate", str(folder), "--registry", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(small.stratified(), tmp_path_factory.mktemp("registry") / "release", rows=5)


def test_a_record_has_all_that_the_certificate_knows_and_all_that_a_person_said(folder, capsys):
    code, out, err = asked(folder, capsys, *options(), "--author", "B. Tester", "--sector", "Government")
    assert (code, err) == (0, "")
    document, record = read_yaml(out), record_of(folder)
    assert list(problems(document, RECORD)) == []
    deployment = document["deployment"]
    basic = deployment["basic"]
    assert [basic[k] for k in ("name", "data_curators", "intended_use", "data_product_region", "publication_date")] == [
        "A made-up survey",
        ["Office of Examples"],
        "testing: no more",
        "Nowhere",
        "2024-02-29",
    ]
    assert deployment["administrative"]["registry_authors"] == ["A. Tester", "B. Tester"]
    assert basic["data_product_type"] == "Synthetic data"
    assert basic["data_product_sector"] == "Government"
    assert deployment["privacy_loss"]["privacy_parameters"] == {
        key: record["guarantee"][key] for key in ("epsilon", "delta", "rho")
    }
    said = json.dumps(document)
    for fact in (
        "independent",
        "SEX and GROUP",
        "Zero-concentrated DP",
        "Central",
        "one record is added or removed",
        "number of records that was declared",
        "discrete Gaussian",
        "Proposition 12",
        "maximum over",
        "stratsynth",
        "AGE, a number from 0 to 9 in 3 categories",
        "made up for testing",
    ):
        assert fact in said, fact


@pytest.mark.parametrize(
    ("how", "budget", "words"),
    [
        (AIM(), small.BUDGET, ("Zero-concentrated DP", "Synthetic data", "exponential mechanism")),
        (ClippedMean(columns=("AGE",)), small.BUDGET, ("Pure DP", "Summary statistics", "discrete Laplace")),
        (Independent(), Budget(1, 1e-9, Neighbours.REPLACE), ("one record is exchanged for any other",)),
    ],
    ids=["aim", "means", "replace"],
)
def test_every_kind_of_release_has_a_valid_record(how, budget, words, tmp_path, capsys):
    _, out, _ = asked(saved(how, tmp_path / "release", budget=budget), capsys, *options())
    assert list(problems(read_yaml(out), RECORD)) == []
    for word in words:
        assert word in out


@pytest.mark.parametrize("option", PERSON)
def test_what_is_missing_is_asked_for_by_name_and_nothing_is_written(option, folder, capsys):
    code, out, err = asked(folder, capsys, *options(**{option[2:]: None}))
    assert (code, out) == (2, "")
    assert f"give {option}." in err


def test_all_that_is_missing_is_asked_for_at_once(folder, capsys):
    code, out, err = asked(folder, capsys)
    assert (code, out) == (2, "")
    assert all(option in err for option in PERSON)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("slug", "A Survey"),
        ("published", "29.2.2024"),
        ("published", "2023-02-29"),
        ("sector", "Astrology"),
        ("published", "20240229"),
    ],
)
def test_what_the_registry_has_no_place_for_is_refused(option, value, folder, capsys):
    code, out, err = asked(folder, capsys, *options(**{option: value}))
    assert (code, out) == (2, "")
    assert f"--{option}" in err


def test_a_person_s_words_without_the_flag_are_refused(folder, capsys):
    assert cli.run(["certificate", str(folder), "--name", "A"]) == 2
    assert "--name goes with --registry" in capsys.readouterr().err


def test_what_promises_nothing_has_no_record(tmp_path, capsys):
    from stratsynth import fit

    folder = fit(small.stratified(), small.table(), small.BUDGET, entropy=SeededEntropy(1)).save(tmp_path / "seeded")
    code, out, err = asked(folder, capsys, *options())
    assert (code, out) == (2, "")
    assert "promises nothing" in err


def test_whatever_a_certificate_says_the_record_is_one_document(folder, tmp_path, capsys):
    hostile = 'a: "b"\n- c\x1b[2J\u0085\u202e # d'
    release = Release.load(folder)
    again = release.save(tmp_path / "release", rows=3)
    edited(again, lambda record: record["weights"].update(citation=hostile))
    code, out, _ = asked(again, capsys, *options(name=hostile))
    assert code == 0
    document = read_yaml(out)
    assert list(problems(document, RECORD)) == []
    assert document["deployment"]["basic"]["name"] == hostile
    assert not set(out) & set("\x1b\u0085\u202e")


def test_the_copy_of_the_registry_s_schema_is_the_registry_s():
    """Every key of the schema, at its indent, is one of ours; required keys are required."""
    if not SCHEMA_FILE.is_file():
        pytest.skip(f"there is no {SCHEMA_FILE}")
    text = SCHEMA_FILE.read_text(encoding="utf-8")
    required = {
        word for block in re.findall(r"required:\n((?: +- \w+\n)+)", text) for word in re.findall(r"\w+", block)
    }

    def keys(table):
        for key, kind in table.items():
            yield key
            yield from keys(kind) if isinstance(kind, dict) else ()

    assert {key[:-1] for key in keys(RECORD) if key[-1] == "!"} == required
    for key in keys(RECORD):
        assert re.search(rf"^ +{key.rstrip('!')}:$", text, re.MULTILINE), key
