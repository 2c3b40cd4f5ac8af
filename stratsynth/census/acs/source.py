"""The Bureau's file of a state and a year: its name, the places where it is looked for, and its download."""

from __future__ import annotations

import gzip
import shutil
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from stratsynth.census.acs.catalogue import check_year, state_of
from stratsynth.errors import UsageError
from stratsynth.files.atomic import new_file
from stratsynth.files.reading import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = "https://www2.census.gov/programs-surveys/acs/data/pums"
HORIZONS = ("1-Year", "5-Year")
GZIP = b"\x1f\x8b"
"""First bytes of a file compressed by gzip."""
SECONDS = 60
"""Time in seconds that a server may keep silent."""
Fetch = Callable[[str, IO[bytes]], None]
"""Function that copies the content of an address to a file, or raises OSError."""


@dataclass(frozen=True)
class StateFile:
    """Person or household records of one state and one year."""

    state: str
    """Two letters of the state."""
    year: int
    horizon: str = "1-Year"
    records: str = "persons"
    """Records of the file: "persons" or "households"."""

    def __post_init__(self) -> None:
        check_year(self.year)
        state_of(self.state)
        if self.horizon not in HORIZONS:
            raise UsageError(f"census: horizon is {' or '.join(HORIZONS)}, not {self.horizon!r}.")

    @property
    def code(self) -> str:
        """Code of the state: two digits, as text."""
        return state_of(self.state)[0]

    @property
    def name(self) -> str:
        """Name of the CSV file at the Bureau, which depends on the year."""
        if self.year >= 2017:
            return f"psam_{self._letter}{self.code}.csv"
        return f"ss{self.year % 100}{self._letter}{self.state.lower()}.csv"

    @property
    def _letter(self) -> str:
        return self.records[0]

    @property
    def archive(self) -> str:
        """Name of the zip file at the Bureau."""
        return f"csv_{self._letter}{self.state.lower()}.zip"

    @property
    def url(self) -> str:
        """Address of the zip file at the Bureau."""
        return f"{BASE}/{self.year}/{self.horizon}/{self.archive}"

    def places(self, folder: Path) -> tuple[Path, ...]:
        """Return a tuple of paths in `folder` where this file may be, CSV or zip; folktables uses the last two."""
        inner = folder / str(self.year) / self.horizon
        return (folder / self.name, folder / self.archive, inner / self.name, inner / self.archive)

    def find(self, where: Path) -> Path:
        """Return the path of the file: `where` itself, or one of `places` in the folder `where`.

        Raises:
            UsageError: No such file; with the names that were looked for, and the address.
        """
        if where.is_dir():
            for place in self.places(where):
                if place.is_file():
                    return place
        elif where.exists():
            return where
        raise UsageError(
            f"census: there is no {self.name} or {self.archive} in {where} or {where / str(self.year) / self.horizon}. "
            f"Get {self.url} and put it there by hand, or add --download."
            if where.is_dir() or not where.suffix
            else f"census: there is no file {where}; the Bureau's is {self.url}"
        )

    def download(self, folder: Path, fetch: Fetch | None = None) -> Path:
        """Fetch the zip file into a folder, whole or not at all, and return its path; `fetch` replaces HTTPS.

        Raises:
            UsageError: A server that cannot be reached or refuses, or no intact zip file; nothing is left then.
        """
        target = self.places(folder)[3]
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with new_file(target) as file:
                (fetch or _fetch)(self.url, file)
                file.flush()
                _sound(Path(file.name), self)
        except OSError as error:
            why = getattr(error, "reason", None) or error.strerror or type(error).__name__
            raise UsageError(
                f"census: {self.url} cannot be fetched ({why}). Get it by other means and put it at {target}."
            ) from None
        return target

    @contextmanager
    def open(self, path: Path) -> Iterator[IO[bytes]]:
        """Yield the CSV file of `path`, open for reading bytes, unpacked if it lies in a zip file.

        Raises:
            UsageError: An empty or damaged file.
        """
        try:
            with open_regular(path) as file:
                start = file.read(2)
                if not start:
                    raise UsageError(f"census: {path} is empty, 0 bytes; get {self.url} again.")
                packed = zipfile.is_zipfile(file) or path.suffix.lower() == ".zip"
                file.seek(0)
                if start == GZIP:
                    with gzip.open(file) as unpacked:
                        yield cast("IO[bytes]", unpacked)
                        return
                if not packed:
                    yield file
                    return
            with zipfile.ZipFile(path) as archive, archive.open(_member(archive, self)) as inner:
                yield inner
        except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise UsageError(f"census: {path} is damaged ({type(error).__name__}); get {self.url} again.") from None


def _member(archive: zipfile.ZipFile, wanted: StateFile) -> str:
    """Return the name of the CSV file in a zip archive: that of the `wanted` `StateFile`, else the only one.

    UsageError if there are several others.
    """
    names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
    for name in names:
        if Path(name).name == wanted.name:
            return name
    if len(names) == 1:
        return names[0]
    raise UsageError(f"census: the archive holds no {wanted.name}; is it of {wanted.state}, {wanted.year}?")


def _sound(path: Path, wanted: StateFile) -> None:
    """Refuse (UsageError) a path that is no intact zip file with the records of the `wanted` `StateFile` in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            _member(archive, wanted)
            damaged = archive.testzip()
    except zipfile.BadZipFile:
        damaged = path.name
    if damaged is not None:
        raise UsageError(
            f"census: what {wanted.url} gave is no whole zip file; nothing of it was kept. Try again later."
        )


def _fetch(url: str, file: IO[bytes]) -> None:
    """Copy the content at the address `url` into the open `file`, by HTTPS.

    OSError for an answer other than 200, or one cut short.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "stratsynth"})  # noqa: S310 - the address is ours
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above # nosec B310
            shutil.copyfileobj(answer, file)
            length = answer.headers.get("Content-Length")
    except urllib.error.HTTPError as error:
        raise OSError(error.code, f"the server says {error.code}") from None
    if length is not None and int(length) != file.tell():
        raise OSError(0, "the connection broke off")
