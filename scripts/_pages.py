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
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURES = (".svg", ".png")
SECONDS = 900
"""The longest that one page may run."""


def main(arguments: list[str]) -> int:
    """Prepare all pages, or run those that are named."""
    if arguments[0] == "--page":
        return run_page(json.loads(sys.stdin.read()))
    root, folder, only = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    shutil.copytree(root / "docs", folder)
    shutil.copy(root / "CHANGELOG.md", folder / "changelog.md")
    if not only:
        import _reference

        _reference.write(folder)
        words = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        glossary = folder / "glossary.md"
        glossary.write_text(_reference.with_words(glossary.read_text(encoding="utf-8"), words), encoding="utf-8")
    for page in [folder / name for name in only] or sorted(folder.rglob("*.md")):
        if not page.is_relative_to(folder / "reference"):
            page.write_text(executed(page), encoding="utf-8")
            if only:
                print(page.read_text(encoding="utf-8"))
    return 0


def executed(page: Path) -> str:
    """The text of a page with the outputs of its examples."""
    text = page.read_text(encoding="utf-8")
    blocks = [match.groups() for match in BLOCK.finditer(text)]
    if not any(language in {"python", "console"} for language, _, _ in blocks):
        return text
    with tempfile.TemporaryDirectory() as where:
        ran = subprocess.run(  # noqa: S603 - this very file
            [sys.executable, "-P", __file__, "--page"],
            input=json.dumps(blocks), capture_output=True, text=True, cwd=where, timeout=SECONDS, check=False,
        )  # fmt: skip
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
    # A draft and a release that is not private are said to be so; any other warning is a mistake in the page.
    warnings.simplefilter("error")
    for kind in ("NotPrivateWarning", "DraftWarning"):
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
    """What a block prints, and what its last line is, if that is an expression."""
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
