"""Prepares the pages for mkdocs: the reference from the code, and every example run, its output beneath it.

    python scripts/_pages.py ROOT FOLDER [PAGE...]

In a page, blocks of Python and of `console` (commands after "$ ") run from top to bottom in one process of their own,
in an empty folder; a block with `title="FILE"` is written there; pictures that the examples draw go beside the page.
Blocks of any other language are shown as they are. The first block that fails ends everything.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

LINK = re.compile(r"(\]\()([^()\s#:]+)((?:#[^()\s]*)?\))")
"""A link to a file: what stands before it, the file, and what comes after."""
PICTURE = re.compile(r"<!-- picture: (\S+) (.*?) -->")
"""The place of a picture that an example draws: its file and its text. In the repository there is none."""
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
"""The pages at the repository's root, and their names beside the others."""
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURES = (".svg", ".png")
SECONDS = 900
"""The longest that one page may run."""


def main(arguments: list[str]) -> int:
    """Prepare all pages, or run those that are named."""
    if arguments[0] == "--page":
        return run_page(json.loads(sys.stdin.read()))
    root, folder, only = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    lay_out(root, folder)
    if not only:
        import _reference

        _reference.write(folder)
    for page in [folder / name for name in only] or sorted(folder.rglob("*.md")):
        page.write_text(executed(page), encoding="utf-8")
        if only:
            print(page.read_text(encoding="utf-8"))
    return 0


def lay_out(root: Path, folder: Path) -> None:
    """The pages of the repository in one folder, with links between them as they lie there."""
    shutil.copytree(root / "docs", folder)
    for name, page in ROOT_PAGES.items():
        shutil.copy(root / name, folder / page)
    homes = {root / name: Path(page) for name, page in ROOT_PAGES.items()}
    homes |= {page: page.relative_to(root / "docs") for page in (root / "docs").rglob("*")}
    for source, page in homes.items():
        if page.suffix == ".md":
            text = relinked(source.read_text(encoding="utf-8"), source, page, homes)
            (folder / page).write_text(PICTURE.sub(r"![\2](\1)", text), encoding="utf-8")


def relinked(text: str, source: Path, page: Path, homes: Mapping[Path, Path]) -> str:
    """A page's text with links that lead from its place among the pages, and none within blocks of code."""

    def link(found: re.Match[str]) -> str:
        target = homes.get(Path(os.path.normpath(source.parent / found[2])))
        if target is None:
            raise SystemExit(f"{source.name}: the link to {found[2]} leads to no page.")
        return f"{found[1]}{Path(os.path.relpath(target, page.parent)).as_posix()}{found[3]}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def executed(page: Path) -> str:
    """The text of a page with the outputs of its examples."""
    text = page.read_text(encoding="utf-8")
    blocks = [match.groups() for match in BLOCK.finditer(text)]
    if not any(language in {"python", "console"} for language, _, _ in blocks):
        return text
    with tempfile.TemporaryDirectory() as where:
        ran = subprocess.run(  # noqa: S603 - this very file
            [sys.executable, "-P", __file__, "--page"],
            input=json.dumps(blocks),
            capture_output=True,
            text=True,
            cwd=where,
            timeout=SECONDS,
            check=False,
        )
        if ran.returncode:
            raise SystemExit(f"docs/{page.name}: an example fails.\n{ran.stderr}")
        for picture in Path(where).iterdir():
            if picture.suffix in PICTURES:
                shutil.copy(picture, page.parent)
    outputs = iter(json.loads(ran.stdout))
    return BLOCK.sub(lambda match: with_output(match, next(outputs)), text)


def with_output(match: re.Match[str], output: str) -> str:
    """A block and what it printed, if anything."""
    if match[1] == "console":
        return f"```text\n{output}```"  # a lexer of consoles would take comments for prompts
    return f'{match[0]}\n\n```text title="prints"\n{output}```' if output else match[0]


def run_page(blocks: list[tuple[str, str | None, str]]) -> int:
    """Run the blocks of a page here; print their outputs as JSON."""
    names, outputs = {"__name__": "page"}, list[str]()
    # Drafts, releases that are not private and notices of certificates say so; other warnings are mistakes in the page.
    warnings.simplefilter("error")
    for kind in ("NotPrivateWarning", "DraftWarning", "NoticeWarning"):
        warnings.simplefilter("always", getattr(__import__("stratsynth.errors").errors, kind))
    warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}")  # type: ignore[assignment]
    for number, (language, title, code) in enumerate(blocks, start=1):
        try:
            if title and language != "python":
                Path(title).write_text(code, encoding="utf-8")
            outputs.append(python(code, names) if language == "python" else console(code, language))
        except Exception:  # noqa: BLE001 - whatever it is, the page is wrong
            sys.stderr.write(f"Block {number}:\n{code}\n{traceback.format_exc()}")
            return 1
    print(json.dumps(outputs))
    return 0


def python(code: str, names: dict[str, object]) -> str:
    """Return a block's output, and the value of its last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, "page", "exec", dont_inherit=True), names)  # noqa: S102 - our own pages # nosec B102
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "page", "eval", dont_inherit=True), names)  # noqa: S307 # nosec B307
            if value is not None:
                print(value)
    return said.getvalue()


def console(code: str, language: str | None) -> str:
    """Commands, each followed by what it says."""
    if language != "console":
        return ""
    said = ""
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", code, re.MULTILINE):
        ran = subprocess.run(  # noqa: S603 - our own pages
            [shutil.which("bash") or "bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(f"$ {command}\n{ran.stdout}")
        said += f"$ {command}\n{ran.stdout.rstrip()}\n\n"
    return said.rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
