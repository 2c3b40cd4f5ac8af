"""The task of made-up images: its rows, its words, and its networks where PyTorch is installed."""

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest

from studies.fermi import STUDY, images

HERE = importlib.util.find_spec("torch") is not None


def test_images_are_pixels_of_nine_classes_and_five_groups():
    made = images.images(3000, 0)
    pixels = made.frame.iloc[:, :144].to_numpy()
    assert [*made.frame.columns[:144]] == [f"P{i}_{j}" for i in range(12) for j in range(12)]
    assert np.abs(pixels).max() <= 3
    assert (made.frame["Y"].nunique(), made.frame["S"].nunique()) == (9, 5)
    joint = pd.crosstab(made.frame["S"], made.frame["Y"], normalize="index")
    frequent = {(g, c) for g in range(5) for c in ((2 * g) % 9, (2 * g + 1) % 9, (2 * g + 2) % 9)}
    means = [
        np.mean([joint.iloc[g, c] for g in range(5) for c in range(9) if ((g, c) in frequent) == f]) for f in (0, 1)
    ]
    assert 3.5 < means[1] / means[0] < 7
    assert made.frame.equals(images.images(3000, 0).frame)


def test_a_glyph_lies_somewhere_in_its_image_and_nowhere_else(monkeypatch):
    monkeypatch.setattr(images, "NOISE", 0.0)
    made = images.images(200, 1)
    for i in range(200):
        picture = made.frame.iloc[i, :144].to_numpy(float).reshape(12, 12)
        drawn = picture - images._backgrounds()["abcde".index(made.frame["S"][i])]
        figure = images._glyphs()[int(made.frame["Y"][i][1])]
        places = [drawn[a : a + 6, b : b + 6] for a in range(7) for b in range(7)]
        assert any(np.allclose(place, figure) for place in places)
        assert np.isclose(drawn.sum(), figure.sum())


def test_the_words_say_what_the_figures_say():
    lines = [
        {"epsilon": e, "penalty": p, "seed": 0, "error": 0.2 + p / 100, "parity": 0.4 - p / 10, "ermi": 1, "seconds": 1}
        for e in (1.0, np.inf)
        for p in (0.0, 2.0)
    ]
    said = images.words(pd.DataFrame(lines), rows=10, iterations=3)
    assert "- epsilon 1, lambda 2 instead of 0: violation of parity -50 %, error +2.0 points." in said
    assert "- epsilon inf, lambda 2 instead of 0:" in said


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--seeds", "0"], "at least 1"), (["--iterations", "0"], "at least 1")]
)
def test_wrong_input_is_refused(arguments, words, capsys):
    assert STUDY.main(["--only", "images", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_existing_folder_is_refused(tmp_path, capsys):
    assert STUDY.main(["--only", "images", "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_without_pytorch_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert STUDY.main(["--only", "images", "--seeds", "1"]) == 2
    assert 'pip install ".[torch]"' in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.skipif(not HERE, reason="PyTorch is not installed; scripts/test --with torch installs it")
def test_networks_are_fitted_at_every_epsilon_and_penalty():
    said, frame = images.reproduce(seeds=1, iterations=2, rows=400)
    assert len(frame) == len(images.EPSILONS) * len(images.PENALTIES)
    assert frame["error"].between(0.3, 1).all()
    assert said.count("violation of parity") == len(images.EPSILONS)
