"""scripts/docs: a page's examples run in order, in a folder of their own; a failing one ends the build."""

import importlib.util
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return script("_pages")


def page(folder, text):
    (folder / "page.md").write_text(text, encoding="utf-8")
    return folder / "page.md"


def test_outputs_stand_beneath_their_blocks(pages, tmp_path):
    text = pages.executed(
        page(
            tmp_path,
            "# A page\n\n```python\nx = 6\nprint('said')\nx * 7\n```\n\n"
            '```toml title="a.toml"\nkey = 1\n```\n\n```console\n$ cat a.toml\n$ echo $((1 + 1))\n```\n\n'
            "```python\nopen('figure.svg', 'w').write('<svg/>') and None\n```\n\n```sh\nrm -rf everything\n```\n",
        )
    )
    assert '```text title="prints"\nsaid\n42\n```' in text
    assert "$ cat a.toml\nkey = 1\n\n$ echo $((1 + 1))\n2\n```" in text
    assert "```sh\nrm -rf everything\n```" in text
    assert (tmp_path / "figure.svg").read_text() == "<svg/>"


@pytest.mark.parametrize(
    "wrong",
    [
        "```python\nraise ValueError('the cause')\n```\n",
        "```console\n$ echo the cause && false\n```\n",
        "```python\nimport warnings\nwarnings.warn('the cause')\n```\n",
        "```python\nthe_cause\n```\n",
    ],
)
def test_an_example_that_fails_ends_the_build(pages, tmp_path, wrong):
    with pytest.raises(SystemExit, match=r"(?s)page\.md: an example fails.*the.cause"):
        pages.executed(page(tmp_path, "```python\nx = 1\n```\n\n" + wrong))


def test_a_page_without_examples_stays_as_it_is(pages, tmp_path):
    text = "# A page\n\n```toml\n[data]\n```\n"
    assert pages.executed(page(tmp_path, text)) == text


@pytest.mark.parametrize(
    ("html", "loads"),
    [
        ('<script src="https://elsewhere.example/a.js"></script>', True),
        ("<link href=//elsewhere.example/a.css rel=stylesheet>", True),
        ('<img alt="" src="http://elsewhere.example/a.png">', True),
        ("<style>@import url(https://elsewhere.example/a.css)</style>", True),
        (
            '<a href="https://elsewhere.example">a link</a><script src="own.js"></script><link rel=canonical href=x>',
            False,
        ),
    ],
)
def test_pages_that_load_something_from_elsewhere_are_refused(tmp_path, capsys, html, loads):
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    assert script("_offline").main(tmp_path) == int(loads)
    assert ("elsewhere.example" in capsys.readouterr().err) == loads
