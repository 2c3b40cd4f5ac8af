"""Docstrings of functions and methods, with the classes and parameters that they should name."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef
NOUNS = {
    "as_json": ("json",),
    "cls": ("class",),
    "data": ("rows", "column", "table"),
    "out": ("file", "folder"),
    "path": ("file", "folder"),
    "rng": ("random", "randomly"),
    "seed": ("seeded",),
}
"""Words that stand for a parameter, beside its own name and the name of its class."""


@dataclass(frozen=True)
class Documented:
    """A function or method with a docstring, and the names of the classes that it lies in, the innermost last."""

    node: Function
    owners: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        """The qualified name inside the file."""
        return ".".join([*self.owners, self.node.name])

    @property
    def parameters(self) -> list[ast.arg]:
        """All parameters but the instance or class that a method is called on."""
        asked = self.node.args
        positional = [*asked.posonlyargs, *asked.args]
        bound = self.owners and not any(ast.unparse(each) == "staticmethod" for each in self.node.decorator_list)
        several = [each for each in (asked.vararg, asked.kwarg) if each is not None]
        return [*positional[1 if bound else 0 :], *asked.kwonlyargs, *several]


def _block(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements directly below a statement or module."""
    for name in ("body", "orelse", "finalbody"):
        below = getattr(node, name, [])
        yield from below if isinstance(below, list) else []
    for handler in getattr(node, "handlers", []):
        yield from handler.body


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements below a statement or module."""
    for item in _block(node):
        yield item
        yield from statements(item)


def documented(tree: ast.AST, owners: tuple[str, ...] = ()) -> Iterator[Documented]:
    """Yield the functions and methods in a tree that have a docstring; dunder methods and properties are left out."""
    for item in _block(tree):
        if isinstance(item, Function):
            text = ast.get_docstring(item)
            if text and not item.name.startswith("__") and not _is_property(item):
                yield Documented(item, owners, text)
            yield from documented(item)
        else:
            yield from documented(item, (*owners, item.name) if isinstance(item, ast.ClassDef) else owners)


def _is_property(node: Function) -> bool:
    return any(re.search(r"property$|\.setter$|\.deleter$", ast.unparse(each)) for each in node.decorator_list)


def plain(name: str) -> list[str]:
    """Return the lower-case words of the name of a class or parameter: "noisy", "answer" of NoisyAnswer."""
    apart = re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", name.replace("_", " "))
    return apart.lower().split()


def _forms(word: str) -> str:
    """Return a pattern of a noun in singular and plural."""
    if word == "stratum":
        return "strat(?:um|a)"
    stem = re.sub(r"(ies|y)$", "", word)
    if stem != word and len(stem) > 1:
        return f"{stem}(?:y|ies)"
    singular = re.sub(r"(?<=[^su])s$", "", word) if len(word) > 3 else word
    return f"{singular}(?:e?s)?"


def says(text: str, words: list[str]) -> bool:
    """True if a text has the words side by side, in singular or plural; two words in either order."""
    orders = [words, words[::-1]] if len(words) == 2 else [words]
    pattern = "|".join(r"(?:'s?)?[\s`_-]*".join(map(_forms, order)) for order in orders)
    return re.search(rf"(?<![a-z])(?:{pattern})(?![a-z])", text.lower()) is not None


class Classes:
    """All classes of the product, with their parents."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self.parents: dict[str, set[str]] = {}
        for tree in trees.values():
            for node in statements(tree):
                if isinstance(node, ast.ClassDef):
                    names = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
                    self.parents.setdefault(node.name, set()).update(names)
        for node in (node for tree in trees.values() for node in tree.body):
            # a name that is a class in one file and a type of arrays in another says nothing
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.parents.pop(node.targets[0].id, None)

    def family(self, name: str) -> set[str]:
        """Return a class with all classes of the product that it inherits from."""
        own = {name} & self.parents.keys()
        return own.union(*(self.family(parent) for one in own for parent in self.parents[one]))

    def annotated(self, annotation: ast.expr | None) -> list[frozenset[str]]:
        """Return the classes of the product in an annotation, a union's together; of a function's type none."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        if isinstance(annotation, ast.Name | ast.Attribute):
            name = annotation.id if isinstance(annotation, ast.Name) else annotation.attr
            return [frozenset({name})] if name in self.parents else []
        if isinstance(annotation, ast.BinOp):
            left, right = self.annotated(annotation.left), self.annotated(annotation.right)
            return [left[0] | right[0]] if len(left) == len(right) == 1 else left + right
        if isinstance(annotation, ast.Subscript):
            outer = ast.unparse(annotation.value).rpartition(".")[2]
            if outer in {"Callable", "Literal", "type"}:
                return []
            if outer == "Annotated" and isinstance(annotation.slice, ast.Tuple):
                return self.annotated(annotation.slice.elts[0])
        parts = [] if annotation is None else ast.iter_child_nodes(annotation)
        return [found for part in parts if isinstance(part, ast.expr) for found in self.annotated(part)]

    def named(self, union: frozenset[str], function: Documented) -> bool:
        """True if a docstring names one of some classes, or a parent of one; a method need not name its own class."""
        family = set().union(*map(self.family, union))
        return not family.isdisjoint(function.owners) or any(says(function.text, plain(one)) for one in family)

    def missing(self, function: Documented) -> list[str]:
        """Return the classes of parameters and result that a docstring does not name.

        A parameter that may be of several classes may be named in place of them.
        """
        typed = [(each.annotation, plain(each.arg)) for each in function.parameters]
        left = [
            "|".join(sorted(union))
            for annotation, noun in [*typed, (function.node.returns, [])]
            for union in self.annotated(annotation)
            if not self.named(union, function) and not (len(union) > 1 and noun and says(function.text, noun))
        ]
        return list(dict.fromkeys(left))

    def unspoken(self, function: Documented) -> list[str]:
        """Return the parameters that a docstring names neither by name, nor by a noun for it, nor by a class.

        Options of commands are described where they are declared.
        """
        decorators = [ast.unparse(each) for each in (*function.node.decorator_list, *function.parameters)]
        if any(".command(" in each or "typer." in each for each in decorators):
            return []
        return [
            parameter.arg
            for parameter in function.parameters
            if not any(says(function.text, noun) for noun in _nouns(parameter.arg))
            and not any(self.named(union, function) for union in self.annotated(parameter.annotation))
        ]


def _nouns(name: str) -> list[list[str]]:
    """Return the words of a parameter's name, the last of them, and other words for it."""
    words = plain(name)
    return [words, words[-1:], *(other.split() for other in NOUNS.get(name, ()))]
