"""Links between pages lead to a file, and to a heading in it: in the repository, and among the pages that are built."""

import importlib.util
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(page):
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def headings(page):
    """The words of each heading, without the signs of Markdown."""
    found = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip() for heading in found]


def in_repository(heading):
    """The anchor that repository views give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_site(heading):
    """The anchor that mkdocs gives a heading."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def dead(pages, anchor):
    """The links of some pages that lead to no file, or to no heading of it."""
    found = []
    for page in pages:
        for link in LINK.findall(prose(page)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, part = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                found.append(f"{page.name}: {link}")
            elif part and part not in map(anchor, headings(target)):
                found.append(f"{page.name}: {link} (no such heading)")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages as mkdocs gets them, without the outputs of their examples."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    script("_pages").lay_out(ROOT, folder)
    script("_reference").write(folder)
    return folder


def test_links_lead_somewhere_in_the_repository():
    assert len(PAGES) > 25
    assert dead(PAGES, in_repository) == []


def test_links_lead_somewhere_on_the_built_pages(site):
    pages = [page for page in site.rglob("*.md") if page.parent.name != "reference"]
    picture = re.compile(r"!\[[^\]]*\]\((.+\.svg)\)")
    named = {(page, name) for page in pages for name in picture.findall(prose(page))}
    assert {name for page, name in named if (page.parent / name).exists()} == {"fair.svg"}  # by a bench
    drawn = {f"{page.name}: {name}" for page, name in named if not (page.parent / name).exists()}
    assert set(dead(pages, on_site)) == drawn  # pictures that the examples draw
    assert len(drawn) == 2


def test_the_navigation_has_every_page(site):
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"- (\S+\.md)$", text, re.MULTILINE)) == sorted(
        str(page.relative_to(site)) for page in site.rglob("*.md")
    )


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "b.md").write_text("# The `part`, and 2\n", encoding="utf-8")
    page = tmp_path / "a.md"
    page.write_text(
        "# A\n[1](b.md) [2](b.md#the-part-and-2) [3](#a)\n[4](c.md) [5](b.md#other) [6](#b) [7](https://x.example)\n"
        "```sh\n[8](d.md)\n```\n",
        encoding="utf-8",
    )
    for anchor in (in_repository, on_site):
        assert dead([page], anchor) == [
            "a.md: c.md",
            "a.md: b.md#other (no such heading)",
            "a.md: #b (no such heading)",
        ]


def test_a_link_out_of_the_pages_ends_the_build(tmp_path):
    pages = script("_pages")
    homes = {tmp_path / "docs" / "a.md": Path("a.md"), tmp_path / "X.md": Path("x.md")}
    source = tmp_path / "docs" / "a.md"
    assert pages.relinked("[x](../X.md#y)\n```sh\n[x](../Z.md)\n```\n", source, Path("a.md"), homes) == (
        "[x](x.md#y)\n```sh\n[x](../Z.md)\n```\n"
    )
    with pytest.raises(SystemExit, match=r"the link to \.\./Z\.md leads to no page"):
        pages.relinked("[x](../Z.md)", source, Path("a.md"), homes)
