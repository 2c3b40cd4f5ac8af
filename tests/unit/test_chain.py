"""The ledger's file: append-only, chained, one writer at a time, and refused at the first wrong byte."""

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

from helpers.ledgers import chained, lines_of
from stratsynth.accounting.chain import Chain
from stratsynth.errors import LedgerError

LINES = [{"kind": "first", "n": 1}, {"kind": "second", "of": [1.5, None, "ä"]}, {"kind": "third"}]


def append(chain, *lines):
    for line in lines:
        with chain.locked() as append:
            append(line)


@pytest.fixture
def path(tmp_path):
    append(Chain(tmp_path / "people.ledger"), *LINES)
    return tmp_path / "people.ledger"


def refused(path, content):
    """True if a chain with this content is refused by whoever reads it and by whoever wants to write."""
    path.write_bytes(content)
    for use in (lambda: Chain(path).read(), lambda: append(Chain(path), {"kind": "more"})):
        with pytest.raises(LedgerError) as error:
            use()
        assert str(path) in str(error.value)
    assert path.read_bytes() == content, "a damaged ledger is never written to"
    return True


def test_what_is_appended_is_read_back_in_order(path):
    assert Chain(path).read() == LINES
    assert lines_of(path) == LINES  # by a reader of our own
    assert chained(LINES) == path.read_bytes()


def test_long_lines_say_what_they_said(tmp_path):
    """Charges are unpacked when they are asked for; all other lines are as they are."""
    charges = [{"amount": 0.5, "n": n} for n in range(2_000)]
    lines = [{"kind": "ledger", "public": ["x" * 40] * 1_000}, {"kind": "charge", "moment": 0, "charges": charges}]
    append(Chain(tmp_path / "people.ledger"), *lines)
    first, second = Chain(tmp_path / "people.ledger").read()
    assert first.get("public") == lines[0]["public"]
    assert (second["moment"], second["charges"]) == (0, charges)


def test_appending_changes_no_byte_that_is_there(path):
    before = path.read_bytes()
    append(Chain(path), {"kind": "fourth"})
    assert path.read_bytes().startswith(before)


def test_a_ledger_is_readable_by_its_owner_alone(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_process_catches_up(path):
    one, other = Chain(path), Chain(path)
    append(one, {"n": 1})
    append(other, {"n": 2})
    append(one, {"n": 3})
    assert other.read() == [*LINES, {"n": 1}, {"n": 2}, {"n": 3}]
    assert lines_of(path) == other.lines


def test_every_bit_of_every_byte_flipped_is_detected(path):
    content = path.read_bytes()
    for at in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            with pytest.raises(LedgerError, match="damaged"):
                Chain(path).read()
    path.write_bytes(content)
    assert Chain(path).read() == LINES


@pytest.mark.parametrize(
    "change",
    [
        lambda a, b, c: [b, a, c],
        lambda a, b, c: [a, c, b],
        lambda a, b, c: [b, c],
        lambda a, b, c: [a, c],
        lambda a, b, c: [a, a, b, c],
        lambda a, b, c: [a, b, c, c],
        lambda a, b, c: [b"\n", a, b, c],
        lambda a, b, c: [a, b"\n", b, c],
        lambda a, b, c: [a, b, c, b"\n"],
        lambda a, b, c: [a, b.replace(b"\n", b"\r\n"), c],
        lambda a, b, c: [a, b, c.upper()],
        lambda a, b, c: [a + b"\0" * 512, b, c],
        lambda a, b, c: [a, b, c, b"\0" * 4096],
        lambda a, b, c: [a[65:], b[65:], c[65:]],
        lambda a, b, c: [b'{"kind":"first"}\n'],
        lambda a, b, c: [b"not a ledger\n"],
        lambda a, b, c: [b"\xff\xfe\n"],
    ],
)
def test_lines_swapped_removed_doubled_or_foreign_are_detected(change, path):
    lines = path.read_bytes().splitlines(keepends=True)
    assert refused(path, b"".join(change(*lines)))


def test_a_tail_torn_anywhere_inside_a_line_is_detected(path):
    Chain(path).next.unlink()
    content = path.read_bytes()
    ends = {0, *(i + 1 for i, byte in enumerate(content) if byte == ord("\n"))}
    for size in range(len(content)):
        if size not in ends:
            assert refused(path, content[:size])


def test_a_line_torn_by_a_kill_is_completed_from_beside(path):
    """It may have been charged for all that anybody knows, so that it stands."""
    content = path.read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for size in range(start + 1, len(content)):
        path.write_bytes(content[:size])
        assert Chain(path).read() == LINES
        assert path.read_bytes() == content[:size]  # whoever only reads writes nothing
        append(Chain(path), {"kind": "more"})
        assert lines_of(path) == [*LINES, {"kind": "more"}]
        path.write_bytes(content)
        Chain(path).next.write_bytes(content[start:])


def test_a_torn_line_is_not_completed_with_another(path):
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    torn = b"".join(lines[:2]) + lines[2][:-9]
    path.write_bytes(torn)
    for beside in (lines[1], lines[2][:-1], lines[2][:-9], b"", lines[2][:-9] + b"\n", lines[2] + lines[2]):
        Chain(path).next.write_bytes(beside)
        assert refused(path, torn)


@pytest.mark.parametrize("grown", [False, True])
def test_a_ledger_cut_by_another_process_is_detected(grown, path):
    """Even when that process wrote something else in the place of what it cut off."""
    chain = Chain(path)
    chain.read()
    first = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(first)
    chain.next.unlink()
    if grown:
        append(Chain(path), {"kind": "other", "filler": "x" * 1000})
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerError, match="damaged"):
            append(chain, {"kind": "more"})
    assert path.read_bytes() == before


def test_a_ledger_removed_while_it_is_used_is_not_begun_anew(path):
    chain = Chain(path)
    chain.read()
    path.unlink()
    with pytest.raises(LedgerError):
        append(chain, {"kind": "more"})
    assert not path.exists()


def test_an_empty_file_is_an_empty_chain(tmp_path):
    (tmp_path / "empty").touch()
    assert Chain(tmp_path / "empty").read() == []


@pytest.mark.parametrize("name", [".", "nowhere/people.ledger", "people.ledger/x", "x" * 300, "\0"])
def test_a_path_that_cannot_be_a_file_is_refused(name, path):
    chain = Chain(path.parent / name)
    for use in (chain.read, lambda: append(chain, {})):
        with pytest.raises(LedgerError):
            use()


# A write that fails


def failing(number, part, name):
    """A stand-in for os.pwrite that writes part of a line to the file of this name, and then finds the disk full."""
    proper = os.pwrite

    def write(handle, content, offset):
        if Path(f"/proc/self/fd/{handle}").readlink().name != name:
            return proper(handle, content, offset)
        if part:
            proper(handle, bytes(content)[: max(1, int(part * len(content)))], offset)
        raise OSError(number, os.strerror(number))

    return write


def unchanged(path, chain):
    """After a failure the file is as it was, and the same chain writes on when there is room."""
    before = lines_of(path)
    append(chain, {"kind": "next"})
    assert lines_of(path) == [*before, {"kind": "next"}] == Chain(path).read()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("part", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("name", ["people.ledger", "people.ledger.next"])
def test_a_write_that_fails_leaves_the_file_as_it_was(number, part, name, path, monkeypatch):
    before, chain = path.read_bytes(), Chain(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing(number, part, name))
        with pytest.raises(LedgerError, match=os.strerror(number)):
            append(chain, {"kind": "more"})
    assert path.read_bytes() == before
    unchanged(path, chain)


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()], ids=repr)
def test_a_line_that_cannot_be_synced_is_taken_back(error, path, monkeypatch):
    def fail(handle):
        raise error

    before, chain = path.read_bytes(), Chain(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises((LedgerError, KeyboardInterrupt)):
            append(chain, {"kind": "more"})
    assert path.read_bytes() == before
    unchanged(path, chain)


def test_a_file_size_limit_leaves_the_file_as_it_was(path):
    before, chain = path.read_bytes(), Chain(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 1, 64, 70):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
            with pytest.raises(LedgerError, match="File too large"):
                append(chain, {"kind": "more"})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
    unchanged(path, chain)


def test_a_write_in_small_pieces_is_completed(path, monkeypatch):
    proper = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda handle, content, offset: proper(handle, bytes(content)[:7], offset))
    chain = Chain(path)
    append(chain, {"kind": "fourth"})
    assert lines_of(path) == [*LINES, {"kind": "fourth"}]


def test_a_line_is_on_the_disk_before_append_returns(path, monkeypatch):
    """A new file's name too."""
    synced = []
    proper = os.fsync

    def sync(handle):
        synced.append((str(Path(f"/proc/self/fd/{handle}").readlink()), os.fstat(handle).st_size))
        proper(handle)

    monkeypatch.setattr(os, "fsync", sync)
    append(Chain(path), {"kind": "fourth"})
    assert synced == [(str(path), path.stat().st_size)]
    new = path.with_name("new.ledger")
    append(Chain(new), {"kind": "first"})
    assert [name for name, _ in synced[1:]] == [str(new), str(new.parent)]


@pytest.mark.parametrize("content", [float("nan"), float("inf")])
def test_what_is_no_json_is_not_written(content, path):
    before, chain = path.read_bytes(), Chain(path)
    with pytest.raises(ValueError, match="JSON"):
        append(chain, {"n": content})
    assert path.read_bytes() == before
    unchanged(path, chain)
