"""A mechanism's words for readers: its label, its paper, and if `Release.samples` was found to hold for it.

A page and `samples` have the certificate alone, perhaps where the mechanism is not installed. So it states
the words of third-party mechanisms; for those that come with stratsynth, which every reader has, the class does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stratsynth.mechanisms.contract import Mechanism
from stratsynth.mechanisms.registry import installed, load

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

KEY = "mechanism_words"
"""Key of a certificate that has these words."""


@dataclass(frozen=True)
class Words:
    """Declarations of one mechanism for readers."""

    label: str = ""
    """Name that a page gives it, before its own; empty for none."""
    paper: str = ""
    """Publication to cite; empty for none."""
    samples: bool = False
    """True if intervals from `Release.samples` were found to hold."""

    @classmethod
    def of(cls, kind: type[Mechanism[Any]]) -> Words:
        """Return the `Words`, label, paper and `samples_hold`, of a mechanism's class, `kind`.

        The last is True only if the class itself sets it.
        """
        return cls(kind.label, str(kind.paper), vars(kind).get("samples_hold") is True)


def stated(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Return {KEY: words} for the certificate of a third-party mechanism; an empty dict for others or without words."""
    if type(mechanism).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return {}
    found = {name: value for name, value in asdict(Words.of(type(mechanism))).items() if value}
    return {KEY: found} if found else {}


def words_of(certificate: Certificate) -> Words:
    """Return the `Words` of a certificate's mechanism: stated there, or else of the class installed by its name."""
    entry = certificate.mechanism_words
    if not entry:
        return installed_words(certificate.mechanism.name)
    label, paper = (text if isinstance(text := entry.get(name), str) else "" for name in ("label", "paper"))
    return Words(label, paper, entry.get("samples") is True)


def with_samples() -> list[str]:
    """Return the names of installed mechanisms whose `Release.samples` intervals were found to hold."""
    return [name for name in installed() if installed_words(name).samples]


def installed_words(name: object) -> Words:
    """Return the `Words` of the mechanism installed by this name; empty ones if it is missing or cannot be imported."""
    if not isinstance(name, str) or name not in installed():
        return Words()
    try:
        return Words.of(load(name))
    except Exception:  # noqa: BLE001 - a plug-in raises what it likes, and a page can do without its words
        return Words()
