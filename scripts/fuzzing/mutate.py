"""Mutations of files: of bytes, of JSON and TOML values, of CSV fields."""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**70, 1e308, -1.5, 1e999, float("nan"), "", "x", "a\0b", "\ud800", "1" * 400),
    *([], {}, [[]], [None], {"": {}}, "../../x", "SEX", "nan"),
)
WORDS = (
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b'"',
        b"\n",
        b",",
        b";",
        b"=",
        b"[",
        b"]",
        b"{",
        b"}",
        b"nan",
        b"inf",
        b"-1",
        b"1e999",
        b"9" * 14,
    ),
    *(b"true", b"''", b"\xe2\x80\xa8", b"[[x]]", b"x = 1\n", b"1,0", b"\r", b"\t", b"0x10", b"2024-01-01"),
)


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return the content with one to four pieces changed, doubled, moved or cut off."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, width = rng.randrange(len(content) + 1), rng.choice((1, 1, 2, 5, 20, 200))
        how = rng.randrange(6)
        if how == 0 and content:
            at %= len(content)
            content = content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
        elif how == 1:
            content = content[:at] + content[at + width :]
        elif how == 2:
            content = content[:at] + rng.choice(WORDS) + content[at + rng.choice((0, width)) :]
        elif how == 3:
            content = content[:at] + content[at : at + width] * rng.choice((2, 3, 50)) + content[at + width :]
        elif how == 4:
            content = content[:at]
        else:
            content = content[:at] + rng.randbytes(width) + content[at:]
    return content


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """Return JSON with one to three values replaced, left out, or put under another key."""
    record = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, key = rng.choice(list(_places(record)) or [(None, None)])
        if holder is None:
            continue
        how = rng.randrange(4)
        if how == 0 and isinstance(holder, dict):
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[rng.choice(("", "x", "name", "SEX"))] = holder.pop(key)
        else:
            holder[key] = rng.choice(ODD)
    return json.dumps(record).encode("utf-8", "surrogatepass")


def _places(value: Any) -> Any:
    """Yield (container, key) of every value in a JSON document."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from _places(each)


def hashed_anew(folder: Path) -> None:
    """Write the hashes of a release's files into its certificate, as a careful forger would."""
    path = folder / "certificate.json"
    try:
        record = json.loads(path.read_bytes())
        record["files"] = {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
            for name in record["files"]
            if (folder / name).is_file()
        }
        path.write_text(json.dumps(record), encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return  # it is damaged already
