"""No network: an opened connection, or a request for an address, is refused and remembered.

Watched by an audit hook, which sees every socket of Python whatever library made it. Started as a program's
`sitecustomize`, it writes what it saw into the file that STRATSYNTH_TEST_NETWORK names.
"""

import os
import sys
from typing import Any

EVENTS = {
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
    "socket.getnameinfo",
}
LOCAL = 1  # AF_UNIX: between processes of one machine
seen: list[str] = []
allowed = False
"""True while connections are neither refused nor remembered, for a test that has to see them."""


loopback = False
"""True while connections within this machine are neither: Spark's own processes talk to each other by them."""


def within(event: str, arguments: tuple[Any, ...]) -> bool:
    place = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
    host = place[0] if isinstance(place, tuple) else place
    return isinstance(host, str) and (host == "localhost" or host.startswith("127."))


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if loopback and event in {"socket.connect", "socket.getaddrinfo"} and within(event, arguments):
        return
    if not allowed and event in EVENTS and int(getattr(arguments[0], "family", 0)) != LOCAL:
        # not the address: a test's values may be in it
        seen.append(event)
        if report := os.environ.get("STRATSYNTH_TEST_NETWORK"):
            with open(report, "a", encoding="utf-8") as file:  # noqa: PTH123 - before pathlib is imported
                file.write(f"{event}\n")
        raise PermissionError(f"{event}: nothing here may use the network")


def forbid() -> None:
    """Refuse connections for the rest of the process: an audit hook cannot be removed."""
    sys.addaudithook(watch)


if __name__ == "sitecustomize":
    forbid()
