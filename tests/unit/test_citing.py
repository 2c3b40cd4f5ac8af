"""Works to cite: references in three forms, the registry of papers, and the works that a certificate names."""

import json
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import stratsynth as ss
from helpers.certificates import record
from helpers.command import complaint, stratsynth
from stratsynth.certificate import Certificate
from stratsynth.errors import UsageError
from stratsynth.mechanisms.registry import load
from stratsynth.papers import AIM, PAPERS, STRATIFICATION, TAILORING
from stratsynth.references import Reference, bibliography
from stratsynth.release.citing import TITLE, software, works, works_of

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "written_by_0_1_0"
CERTIFICATE = record(
    created="2026-11-20",
    guarantee={"epsilon": 1.0, "delta": 1e-9},
    strata={"by": []},
    weights={"source": "none", "citation": None},
) | {"mechanism": {"name": "mst", "settings": {}}}


def cited(**entries):
    """The texts of what a certificate with these entries is cited with, but for the software."""
    return [str(work) for work in works_of(Certificate.from_dict(CERTIFICATE | entries)) if work.kind != "software"]


def test_bibtex_of_an_article():
    assert AIM.bibtex() == (
        "@article{mckenna2022aim,\n"
        "  author = {McKenna, Ryan and Mullins, Brett and Sheldon, Daniel and Miklau, Gerome},\n"
        "  title = {{AIM: an adaptive and iterative mechanism for differentially private synthetic data}},\n"
        "  journal = {Proceedings of the VLDB Endowment},\n"
        "  volume = {15},\n"
        "  number = {11},\n"
        "  year = {2022},\n"
        "  url = {https://arxiv.org/abs/2201.12677},\n"
        "}"
    )


def test_a_line_of_apa_has_authors_year_title_and_link():
    assert str(AIM) == (
        "McKenna, R., Mullins, B., Sheldon, D., & Miklau, G. (2022). AIM: an adaptive and iterative mechanism for "
        "differentially private synthetic data. Proceedings of the VLDB Endowment, 15(11). "
        "https://arxiv.org/abs/2201.12677"
    )
    assert str(TAILORING) == (
        "Privacy budget tailoring in private data analysis. Anonymous manuscript under double-blind review."
    )
    assert str(software("9.9")) == f"stratsynth authors. (n.d.). {TITLE} (Version 9.9) [Computer software]."


def test_csl_names_people_and_organisations():
    (paper, program) = json.loads(bibliography([STRATIFICATION, software("9.9")], "json"))
    assert paper["author"][0] == {"family": "Rosenblatt", "given": "Lucas"}
    assert paper["issued"] == {"date-parts": [[2024]]}
    assert (program["type"], program["version"]) == ("software", "9.9")
    assert program["author"] == [{"literal": "stratsynth authors"}]


def test_signs_of_tex_are_written_out():
    entry = Reference(key="k", kind="dataset", title="100 % of A_B & {C}\\input{x}\nline", link="https://a.example/b_c")
    text = entry.bibtex()
    assert r"title = {{100 \% of A\_B \& \{C\}\textbackslash{}input\{x\} line}}" in text
    assert "url = {https://a.example/b_c}" in text


def test_an_entry_is_written_once():
    assert bibliography([AIM, STRATIFICATION, AIM], "apa").count("\n") == 1
    with pytest.raises(UsageError, match='must be "bibtex" or "apa" or "json"'):
        bibliography([AIM], "endnote")


def test_papers_have_keys_of_their_own_and_links():
    assert len({paper.key for paper in PAPERS}) == len(PAPERS)
    assert len({str(paper) for paper in PAPERS}) == len(PAPERS)
    for paper in PAPERS:
        assert paper is TAILORING or (paper.authors and paper.year and paper.link.startswith("https://"))


def test_mechanisms_name_papers_of_the_registry():
    without = set()
    for point in entry_points(group="stratsynth.mechanisms"):
        paper = load(point.name).paper
        assert paper in {"", *PAPERS}, point.name
        without |= {point.name} if not paper else set()
    assert without == {"fixed", "independent", "linked", "pooled"}


def test_the_citation_file_has_the_software_and_the_five_papers():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    head, *references = re.split(r"^  - type: ", text, flags=re.MULTILINE)
    assert f'\ntitle: "{TITLE}"\n' in head
    assert len(references) == 5
    for paper, entry in zip(PAPERS, references, strict=False):
        assert f'    title: "{paper.title}"\n' in entry
        people = re.findall(r'family-names: "(.+)"\n\s+given-names: "(.+)"', entry)
        assert tuple(f"{family}, {given}" for family, given in people) == paper.authors
        assert re.findall(r"    year: (\d+)\n", entry) == [paper.year] * bool(paper.year)
        assert re.findall(r'    url: "(.+)"', entry) == [paper.link] * bool(paper.link)
        assert paper.venue in entry


def test_pages_name_papers_by_title_and_link():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    texts = {page.name: " ".join(page.read_text(encoding="utf-8").split()) for page in pages}
    assert [name for name, text in texts.items() if re.search(r"\bpapers? 00\d", text)] == []
    for paper in set(PAPERS) - {TAILORING}:
        link = re.compile(rf"\({paper.year}\), \[{re.escape(paper.title)}\]\({re.escape(paper.link)}\)")
        assert any(link.search(text) for text in texts.values()), paper.key
    assert f'"{TAILORING.title}"' in texts["regression.md"]


def test_a_release_is_cited_with_its_software_its_papers_and_its_sources():
    release = ss.Release.load(GOLDEN / "pooled")
    assert re.findall(r"@\w+\{(\w+),", release.cite()) == [
        "stratsynth",
        "mckenna2022aim",
        "rosenblatt2024simple",
        "weights1",
    ]
    assert "  version = {0.1.0},\n" in release.cite()
    assert release.cite("apa").endswith("made up. Source of the group weights.")


def test_a_title_makes_the_release_an_entry():
    called = {"title": "Survey of 2024", "publisher": "Office, Statistical"}
    assert cited(called=called)[0] == (
        "Office Statistical. (2026). Survey of 2024. Made with epsilon 1 and delta 1e-09."
    )
    assert not any("Survey" in work for work in cited(called={"publisher": "Office"}))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"source": "public", "citation": "Table P9"}, ["Table P9"]),
        ({"source": "private", "citation": "noisy counts of these data", "share": 0.1, "prior": None}, []),
        (
            {"source": "private", "citation": "noisy counts", "prior": {"source": "public", "citation": "Table P9"}},
            ["Table P9"],
        ),
        ({"source": "holdout", "citation": "a confidential holdout", "confidential": True}, []),
        ({"source": "holdout", "citation": "A survey", "confidential": False}, ["A survey"]),
        ({"source": "invariant", "citation": "exact counts of the confidential data"}, []),
        (
            {
                "source": "raked",
                "citation": "a; b",
                "start": None,
                "margins": [{"source": "public", "citation": "a"}, {"source": "public", "citation": "b"}],
            },
            ["a", "b"],
        ),
    ],
)
def test_published_sources_of_weights_are_cited(weights, expected):
    found = [work for work in cited(weights=weights) if work.endswith(" Source of the group weights.")]
    assert found == [f"{text}. Source of the group weights." for text in expected]


def test_sources_of_a_prior_are_cited_one_by_one():
    tables = [{"citation": text, "columns": ["SEX"]} for text in "aba"]
    assert cited(prior={"origin": "public", "citation": "rows", "tables": tables})[1:] == [
        "rows. Source of the prior.",
        "a. Source of the prior.",
        "b. Source of the prior.",
    ]
    alone = cited(prior={"origin": "public", "citation": "a; b", "tables": tables})
    assert alone[1:] == ["a. Source of the prior.", "b. Source of the prior."]


def test_a_mechanism_from_elsewhere_is_cited_by_its_own_words():
    entries = {"mechanism": {"name": "gone", "settings": {}}, "mechanism_words": {"paper": "Somebody (2020). A way."}}
    assert cited(**entries) == ["Somebody (2020). A way."]
    assert cited(mechanism={"name": "gone", "settings": {}}) == []


def test_the_command_prints_what_python_prints(tmp_path):
    done = stratsynth("cite", GOLDEN / "pooled", "--format", "apa", cwd=tmp_path)
    assert done.stdout.rstrip("\n") == ss.Release.load(GOLDEN / "pooled").cite("apa")
    everything = stratsynth("cite", cwd=tmp_path).stdout
    assert everything.rstrip("\n") == bibliography(works())
    assert everything.count("\n@") == len(PAPERS)


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        (None, [], "no release: it has no certificate.json"),
        ("{", [], "certificate.json is damaged"),
        (None, ["--format", "endnote"], "no release"),
    ],
)
def test_the_command_refuses_what_is_no_release(tmp_path, text, arguments, expected):
    folder = tmp_path / "release"
    folder.mkdir()
    if text is not None:
        (folder / "certificate.json").write_text(text, encoding="utf-8")
    done = stratsynth("cite", folder, *arguments, cwd=tmp_path)
    assert expected in complaint(done, 2)
