"""`stratsynth verify`: a sound release holds; whatever somebody changed in one does not."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import stratsynth as ss
from helpers import recompute, small
from helpers.command import started
from helpers.ledgers import chained, lines_of
from helpers.releases import copied, edited, record_of, rewritten, saved, tied_again
from helpers.toys import Toy
from stratsynth import Budget, Stratified, StratumBudgets, cli
from stratsynth.accounting.budget import Neighbours
from stratsynth.adapters import AIM, MST, External, Independent
from stratsynth.adapters.means import ClippedMean, CoinPress
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Columns, total
from stratsynth.schema import Schema, Unit
from stratsynth.verifying.verdict import NEVER

GOLDEN = Path(__file__).parents[1] / "golden" / "written_by_0_1_0"
CHECKER = Path(__file__).parents[3] / "shared" / "tools" / "check_release.py"


@dataclasses.dataclass(frozen=True)
class Sampled(Toy):
    """Two steps on Poisson samples; its model is another fit's."""

    name = "sampled_toy"

    def price(self, public, budget):
        return budget.sampled(rate=0.1, steps=2)

    def steps(self, public, allot, rng):
        query = Columns(("AGE",), (4.5,), (4.5,), clip=1.0)
        for _ in range(2):
            yield from total(query, noise=allot.noise, rate=allot.rate)
        return small.clear_release(Independent()).model


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a release that was charged to people.ledger."""
    folder = tmp_path_factory.mktemp("place")
    assert cli.run(["fit", str(recipe_with_a_ledger(folder)), "-o", str(folder / "release")]) == 0
    return folder


@pytest.fixture
def release(place, tmp_path):
    return copied(place / "release", tmp_path / "release")


def ledger_of(place):
    return place / "people.ledger"


def recipe_with_a_ledger(folder):
    recipe = small.write_recipe(folder)
    small.edit(recipe, "delta = 1e-9", 'delta = 1e-9\nledger = "people.ledger"')
    return recipe


def problems(folder, **settings):
    verdict = ss.verify(folder, **settings)
    assert verdict.ok == (not verdict.findings)
    return " ".join(verdict.findings)


# What holds


def ways():
    """Every currency but claims, adaptive or not, by strata or not, for records and for persons."""
    yield "stratified", small.stratified(), {}
    yield "mst", MST(), {}
    yield "aim", AIM(), {}
    yield "adaptive in strata", Stratified(AIM(), ["SEX"], small.even(small.SCHEMA, "SEX")), {}
    yield "pure epsilon", ClippedMean(columns=("AGE",)), {}
    yield "sums in rho", CoinPress(columns=("AGE",)), {}
    yield "replace", Independent(), {"budget": Budget(1, 1e-9, Neighbours.REPLACE)}
    inner = Stratified(Independent(), ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    yield "strata in strata", Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX")), {}
    own = StratumBudgets.factors({"1|b": 0.5})
    yield (
        "own budgets",
        Stratified(Independent(), ["SEX", "GROUP"], small.even(small.SCHEMA, "SEX", "GROUP"), budgets=own),
        {},
    )
    yield "private weights", Stratified(MST(), ["SEX"], ss.Weights.private(share=0.1)), {}
    persons = Schema(small.SCHEMA.columns, unit=Unit(column="PERSON", max_rows=3))
    data = small.people(300).assign(PERSON=[i % 80 for i in range(300)])
    yield "persons", small.stratified(), {"table": ss.open_table(data, schema=persons, declared_size=300)}
    yield "samples", Sampled(), {}


@pytest.mark.parametrize(("how", "settings"), [pytest.param(h, s, id=name) for name, h, s in ways()])
def test_a_release_as_it_was_made_holds(how, settings, tmp_path):
    folder = tmp_path / "release"
    verdict = ss.verify(saved(how, folder, **settings))
    assert verdict.findings == ()
    assert verdict.ok
    said = " ".join(verdict.checked)
    for sentence in ("epsilon", "prices", "files are those", "the schema that the certificate"):
        assert sentence in said
    assert set(NEVER) <= set(verdict.unchecked)


@pytest.mark.parametrize("name", ["mst", "independent", "clipped_mean", "gem", "pooled"])
def test_a_release_of_version_0_1_0_holds_and_what_it_did_not_write_down_is_said(name):
    verdict = ss.verify(GOLDEN / name)
    assert verdict.ok, verdict.findings
    assert "lists no hashes of files" in " ".join(verdict.unchecked)


def resample(frame, sizes, epsilon, delta, rows):
    return frame.iloc[[i % max(len(frame), 1) for i in range(rows)]].reset_index(drop=True)


def test_claims_are_added_up_and_said_to_be_claims(tmp_path):
    how, exchanged = External(resample, "their package 1.0"), Budget(1, 1e-9, Neighbours.REPLACE)
    folder = saved(how, tmp_path / "release", budget=exchanged)
    verdict = ss.verify(folder)
    assert verdict.ok, verdict.findings
    assert "somebody's word: their package 1.0" in " ".join(verdict.unchecked)
    edited(folder, lambda record: record["charges"][0].update(delta=1e-6))
    assert "deltas add up" in problems(folder)
    edited(folder, lambda record: record["guarantee"].update(epsilon=0.5))
    assert "contradicts itself" in problems(folder)


def test_the_ledger_that_was_charged_holds_the_fit(place):
    verdict = ss.verify(place / "release", ledger=ledger_of(place))
    assert verdict.ok, verdict.findings
    assert "is unbroken, and holds the reservation and all 4 charges" in " ".join(verdict.checked)
    assert "of 1e-15 kept for them" in " ".join(verdict.checked)


def test_tails_that_were_cut_off_too_soon_are_found(place, tmp_path):
    """The ledger says of each answer how far its noise was from its law."""
    lines = [line | ({"distance": 1e-15} if line["kind"] == "charge" else {}) for line in lines_of(ledger_of(place))]
    (tmp_path / "people.ledger").write_bytes(chained(lines))
    assert "cut-off tails of the noise take 3.72e-15 of delta; 1e-15" in problems(
        place / "release", ledger=tmp_path / "people.ledger"
    )


def test_the_command_says_it_in_words_and_in_json_and_by_its_exit_code(place, release, capsys):
    assert cli.run(["verify", str(release), "--ledger", str(ledger_of(place))]) == 0
    words = capsys.readouterr().out
    assert words.startswith("What was looked at holds.")
    for said in ("Canonne, Kamath and Steinke 2020", "Proposition 12", "to be believed:", "honest"):
        assert said in words
    edited(release, lambda record: record["guarantee"].update(epsilon=0.1))
    assert cli.run(["verify", str(release), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert "epsilon" in found["findings"][0]
    assert cli.run(["verify", str(release)]) == 1
    assert capsys.readouterr().out.startswith("DOES NOT HOLD")
    assert cli.run(["verify", str(release / "nowhere")]) == 2
    assert cli.run(["verify", str(release), "--ledger", str(release / "nowhere")]) == 2


# Recomputed by other means


@pytest.mark.parametrize("name", ["stratified", "mst", "adaptive in strata"])
def test_the_guarantee_recomputes_with_dp_accounting(name, tmp_path):
    """An accountant of somebody else, on the noise that the charges state; it is an upper bound too."""
    how = {n: h for n, h, _ in ways()}[name]
    record = record_of(saved(how, tmp_path / "release"))
    assert ss.verify(tmp_path / "release").ok
    guarantee = record["guarantee"]
    rho = float(recompute.total_rho(record["charges"]))
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(GaussianDpEvent(1 / (2 * rho) ** 0.5))  # of order a: rho a, as of anything rho-zCDP
    assert accountant.get_epsilon(guarantee["delta"]) == pytest.approx(guarantee["epsilon"], rel=2e-3)


def test_counts_alone_cost_less_than_stated_by_privacy_loss_distributions(tmp_path):
    record = record_of(saved(small.stratified(), tmp_path / "release"))
    worst = 0.0
    for charge in record["charges"]:
        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(GaussianDpEvent(charge["sigma"] / charge["sensitivity"]["add-remove"]))
        worst = max(worst, accountant.get_epsilon(record["guarantee"]["delta"]))
    assert 0.8 < worst <= record["guarantee"]["epsilon"]


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [(0.0001, 0.07436279311413624), (0.01, 0.8101744678675342), (0.014973057673588528, 1), (1, 9.521463671792233)],
)
def test_the_conversion_that_the_certificate_names_gives_the_reference_s_figures(rho, epsilon):
    from stratsynth.accounting.zcdp import epsilon_of

    assert epsilon_of(rho, 1e-9) == pytest.approx(epsilon, rel=2e-6)
    assert recompute.epsilon(rho, 1e-9) == pytest.approx(epsilon, rel=2e-6)


def test_the_check_from_outside_agrees(place):
    if not CHECKER.is_file():
        pytest.skip(f"there is no {CHECKER}")
    done = subprocess.run([sys.executable, CHECKER, place / "release"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# What somebody changed in the certificate


def _merge(record):
    record["charges"] = record["charges"][1:]


EDITS = {
    "a smaller epsilon": (lambda r: r["guarantee"].update(epsilon=0.1), "contradicts itself"),
    "a smaller delta": (lambda r: r["guarantee"].update(delta=1e-12, truncation_delta=1e-18), "contradicts itself"),
    "epsilon not a number": (lambda r: r["guarantee"].update(epsilon=float("nan")), "epsilon"),
    "a negative epsilon": (lambda r: r["guarantee"].update(epsilon=-1), "epsilon"),
    "an infinite epsilon": (lambda r: r["guarantee"].update(epsilon=float("inf")), "epsilon"),
    "a smaller rho": (lambda r: r["guarantee"].update(rho=r["guarantee"]["rho"] / 2), "contradicts itself"),
    "smaller epsilon, rho and price": (
        lambda r: (r["guarantee"].update(epsilon=0.5, rho=0.004), r["prices"].update({"add-remove": 0.5})),
        "charges come to",
    ),
    "a smaller price": (lambda r: r["prices"].update(move=1.0), "price of move"),
    "a price left out that the guarantee is about": (lambda r: r["prices"].pop("add-remove"), "no price"),
    "a charge left out": (_merge, "measurements.parquet holds"),
    "a cheaper charge": (lambda r: r["charges"][0].update(rho=1e-4), "its noise costs"),
    "more noise than was added": (
        lambda r: r["charges"][0].update(sigma=100.0, rho=2e-4),
        "measurements.parquet holds",
    ),
    "a smaller sensitivity": (
        lambda r: r["charges"][0].update(rho=1e-4, sensitivity={"add-remove": 0.1, "replace": 0.15}),
        "sensitivity",
    ),
    "two strata called one": (
        lambda r: r["charges"][0].update(path=r["charges"][1]["path"]),
        "contradicts itself",
    ),
    "another conversion": (lambda r: r["conversion"].update(formula="epsilon = 0"), "conversion"),
    "no conversion and no hashes of a new version": (lambda r: r.pop("files"), "lists no hashes"),
    "not private": (lambda r: r.update(private=False, warning="NOT PRIVATE: seeded."), "promises nothing"),
    "a smaller total": (lambda r: r["ledger"].update(spent_epsilon=0.2), "less than this one alone"),
    "charges of another shape": (lambda r: r.update(charges=[1]), "charges"),
    "strata of another shape": (lambda r: r.update(strata=[]), "damaged"),
    "another schema": (lambda r: r["schema"].update(sha256="0" * 64), "schema"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_certificate_does_not_hold(name, release):
    change, said = EDITS[name]
    assert problems(release) == ""
    edited(release, change)
    assert said in problems(release)


@pytest.mark.parametrize(
    "name", ["a smaller epsilon", "epsilon not a number", "a negative epsilon", "smaller epsilon, rho and price"]
)
@pytest.mark.parametrize("command", ["certificate", "sample"])
def test_a_certificate_that_contradicts_itself_is_neither_shown_nor_sampled_from(name, command, release, capsys):
    edited(release, EDITS[name][0])
    more = ["-n", "5", "-o", str(release.parent / "rows.csv")] if command == "sample" else []
    assert cli.run([command, str(release), *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "certificate.json" in said.err
    assert not (release.parent / "rows.csv").exists()


def test_strata_that_were_charged_more_than_their_own_budget_do_not_hold(tmp_path):
    how = next(h for name, h, _ in ways() if name == "own budgets")
    folder = saved(how, tmp_path / "release")
    assert problems(folder) == ""
    edited(folder, lambda record: record["strata"]["epsilon"].update({"1|b": 0.1}))
    assert "Stratum 1|b was charged epsilon 0.5" in problems(folder)


@pytest.mark.parametrize("made_up", [{"AGE": "0-2"}, {"SEX": "1", "GROUP": "c"}, {"SEX": "1"}], ids=str)
def test_charges_of_everybody_cannot_be_passed_off_as_those_of_strata(made_up, tmp_path):
    """A maximum over strata is less than a sum: made-up strata would make a fit look cheaper than it was."""
    folder = saved(Stratified(MST(), ["SEX", "GROUP"], small.even(small.SCHEMA, "SEX", "GROUP")), tmp_path / "release")
    assert problems(folder) == ""
    edited(folder, lambda record: next(c for c in record["charges"] if c["kind"] == "choose").update(path=[made_up]))
    assert "no stratum of the columns and levels that are declared" in problems(folder)


def test_the_dearest_course_of_an_adaptive_fit_cannot_be_made_cheaper(tmp_path):
    folder = saved(AIM(), tmp_path / "release")
    record = record_of(folder)
    assert record["dearest"]["factor"] == 4
    edited(folder, lambda r: (r["dearest"].update(factor=1), r["prices"].update(dict.fromkeys(r["prices"], 1.0))))
    assert "a worst case" in problems(folder)
    edited(folder, lambda r: r["dearest"].update(factor=4))
    assert "price of move" in problems(folder)


def test_steps_on_samples_and_pure_epsilon_are_recomputed(tmp_path):
    folder = saved(Sampled(), tmp_path / "sampled")
    edited(folder, lambda record: record["guarantee"].update(noise=1.0, steps=1.0))
    edited(folder, lambda record: [charge.update(noise=1.0) for charge in record["charges"]])
    assert "reserved" in problems(folder)
    folder = saved(ClippedMean(columns=("AGE",)), tmp_path / "pure")
    edited(folder, lambda record: record["charges"][0].update(scale=1.0))
    assert "its noise costs" in problems(folder)


# What somebody changed in the folder


def swapped(text):
    assert 'levels = ["1", "2"]' in text
    return text.replace('levels = ["1", "2"]', 'levels = ["2", "1"]')


def test_levels_in_another_order_do_not_hold_and_are_not_loaded(release):
    path = release / "model" / "schema.toml"
    path.write_text(swapped(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"model/schema\.toml is not the file that certificate\.json lists"):
        ss.Release.load(release)
    assert "model/schema.toml is not the file that was made" in problems(release)
    tied_again(release)  # as a forger would, who can list hashes as well
    with pytest.raises(ReleaseError, match=r"is not the schema that certificate\.json states"):
        ss.Release.load(release)
    assert "levels may stand for others" in problems(release)


def test_levels_in_another_order_are_not_loaded_from_a_release_of_0_1_0(tmp_path):
    release = copied(GOLDEN / "independent", tmp_path / "old")
    path = release / "model" / "schema.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count('"a",') == 1
    path.write_text(text.replace('"a",', '"@",').replace('"b",', '"a",').replace('"@",', '"b",'), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"is not the schema that certificate\.json states"):
        ss.Release.load(release)


@pytest.mark.parametrize(
    "name", ["synthetic.parquet", "measurements.parquet", "report.html", "model/model.npz", "model/schema.toml"]
)
def test_a_file_that_is_changed_or_gone_does_not_hold(name, release):
    path = release / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert f"{name} is not the file that was made" in problems(release)
    path.unlink()
    assert f"{name} is missing" in problems(release)


@pytest.mark.parametrize("name", ["measurements.parquet", "model/model.npz", "model/schema.toml"])
def test_what_is_loaded_is_what_was_listed(name, release, place):
    ss.Release.load(release)
    other = copied(place / "release", release.parent / "other")
    with (other / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(ReleaseError, match="is not the file that"):
        ss.Release.load(other)


def test_a_file_that_was_added_is_no_part_of_the_release(release):
    (release / "more.csv").write_text("SEX\n1\n", encoding="utf-8")
    assert "more.csv is not part of the release: it was added later" in problems(release)
    (release / "more.csv").unlink()
    (release / "model" / "evil.pkl").write_bytes(b"")
    assert "model/evil.pkl is not part of the release" in problems(release)


def test_a_link_to_a_listed_file_is_not_that_file(release, place):
    (release / "report.html").unlink()
    (release / "report.html").symlink_to(place / "release" / "report.html")
    assert "report.html is not the file that was made" in problems(release)


def test_measurements_with_more_tables_or_less_noise_than_was_paid_for_do_not_hold(release):
    def quieter(table):
        return table.set_column(5, "sigma", pa.array([s / 2 for s in table["sigma"].to_pylist()]))

    path = release / "measurements.parquet"
    rewritten(path, quieter)
    tied_again(release)
    assert "measurements.parquet holds" in problems(release)


def test_the_certificate_is_loaded_as_the_fit_made_it(place):
    """The list of files is the folder's, not the release's: a release that is saved again lists its own."""
    release = ss.Release.load(place / "release")
    assert "files" not in release.certificate
    folder = release.save(place / "again", rows=3)
    assert ss.verify(folder).ok
    shutil.rmtree(folder)


# What somebody changed in the ledger


def test_another_ledger_or_another_release_is_found(place, tmp_path, release):
    ledger = tmp_path / "people.ledger"
    ledger.write_bytes(ledger_of(place).read_bytes())
    assert problems(release, ledger=ledger) == ""
    ledger.write_bytes(ledger.read_bytes()[:-20] + b"x" * 19 + b"\n")
    assert "damaged" in problems(release, ledger=ledger)
    other = tmp_path / "other"
    small.edit(recipe_with_a_ledger(other), "epsilon = 1.0", "epsilon = 0.9")
    assert cli.run(["fit", str(other / "recipe.toml"), "-o", str(other / "release")]) == 0
    assert "holds no fit of this mechanism" in problems(release, ledger=ledger_of(other))
    (tmp_path / "empty").touch()
    assert "holds no fit of this mechanism" in problems(release, ledger=tmp_path / "empty")
    with pytest.raises(UsageError, match="no ledger"):
        ss.verify(release, ledger=tmp_path / "nowhere")


def test_another_ledger_with_the_same_guarantee_is_not_the_release_s(place, tmp_path, release):
    """Equal mechanism, budget and allotment, but strata by other columns, have other charges."""
    small.edit(recipe_with_a_ledger(tmp_path / "other"), 'by = ["SEX", "GROUP"]', 'by = ["GROUP"]')
    shares = tmp_path / "other" / "shares.csv"
    shares.write_text("GROUP,share\na,0.9\nb,0.1\n")
    assert cli.run(["fit", str(tmp_path / "other" / "recipe.toml"), "-o", str(tmp_path / "other" / "release")]) == 0
    assert "holds no fit of this mechanism" in problems(release, ledger=ledger_of(tmp_path / "other"))


def test_what_the_ledger_had_spent_before_cannot_be_left_out(tmp_path, monkeypatch):
    recipe_with_a_ledger(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["fit", "recipe.toml", "-o", "one"]) == 0
    assert cli.run(["fit", "recipe.toml", "-o", "two", "--again"]) == 0
    ledger = ledger_of(tmp_path)
    assert problems("one", ledger=ledger) == problems("two", ledger=ledger) == ""
    edited("two", lambda record: record["ledger"].update(spent_epsilon=1.0))
    assert "by the ledger it was 1.437" in problems("two", ledger=ledger)


def test_nothing_is_written_and_seeded_noise_promises_nothing(place, tmp_path):
    before = small.tree(place)
    ss.verify(place / "release", ledger=ledger_of(place))
    assert small.tree(place) == before
    seeded = ss.fit(small.stratified(), small.table(), small.BUDGET, entropy=SeededEntropy(1)).save(tmp_path / "seeded")
    assert "promises nothing: NOT PRIVATE" in problems(seeded)


# Signatures, by tools that exist


def test_a_signature_beside_the_certificate_is_mentioned_and_not_judged(release, tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    key = tmp_path / "key"
    sign = ["ssh-keygen", "-Y", "sign", "-n", "stratsynth", "-f", key, release / "certificate.json"]
    for command in (["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], sign):
        subprocess.run(command, check=True, capture_output=True)
    verdict = ss.verify(release)
    assert verdict.ok, verdict.findings
    assert "the signature certificate.json.sig" in " ".join(verdict.unchecked)
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"office@example.org {key.with_suffix('.pub').read_text()}")
    check = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-n",
        "stratsynth",
        "-f",
        signers,
        "-I",
        "office@example.org",
        "-s",
        release / "certificate.json.sig",
    ]
    certificate = (release / "certificate.json").read_bytes()
    assert subprocess.run(check, input=certificate, capture_output=True, check=False).returncode == 0
    forged = certificate.replace(b'"epsilon": 1.0', b'"epsilon": 0.5')
    assert subprocess.run(check, input=forged, capture_output=True, check=False).returncode != 0


def test_the_command_is_there_as_users_start_it(place):
    done = started("verify", place / "release", cwd=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
