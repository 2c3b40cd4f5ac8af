"""Parts of a page of HTML; fails where its tags do not close."""

import base64
import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

from stratsynth.report.html import render

EMPTY = {"meta", "link", "line", "rect", "circle", "path", "polygon", "polyline", "br"}
FETCHING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping"}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))


class Page:
    """A page that was read, and checks that hold for all of them."""

    def __init__(self, html):
        html = html if isinstance(html, str) else render(html)
        self.html = html
        reader = Reader()
        reader.feed(html)
        reader.close()
        assert reader.open == []
        self.elements = reader.elements
        self.text = " ".join("".join(t for tag, t in reader.texts if tag not in {"style", "script"}).split())
        self.blocks = {kind: [t for tag, t in reader.texts if tag == kind] for kind in ("style", "script")}

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def check(self):
        """Valid, self-contained, titled, and shut against anything that is not its own."""
        identities = [a["id"] for _, a in self.elements if "id" in a]
        assert len(identities) == len(set(identities))
        for tag, attributes in self.elements:
            assert tag not in {"iframe", "object", "embed", "base", "img"}, tag
            assert not FETCHING & attributes.keys(), (tag, attributes)
            assert not any(name.startswith("on") for name in attributes), (tag, attributes)
            assert "style" not in attributes, "an inline style, which the policy forbids"
            href = attributes.get("href", "#")
            assert href.startswith("data:") or href[1:] in ["", *identities], href[:60]
        assert not re.search(r"url\(|@import", "".join(self.blocks["style"]))
        policy = next(a["content"] for a in self.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy
        for block in self.blocks["style"] + self.blocks["script"]:
            digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert len(self.blocks["script"]) == 1
        for attributes in self.all("svg"):
            hidden = attributes.get("aria-hidden") == "true"
            named = attributes.get("role") == "img" and attributes.get("aria-label")
            assert hidden or named or "overflow" in attributes, attributes
        return self

    def numbers(self, name):
        """The rows of a file beside a picture, as CSV and as JSON."""
        links = {a["download"]: a["href"] for a in self.all("a") if "download" in a}
        text = unquote(links[f"{name}.csv"].partition(",")[2])
        document = json.loads(unquote(links[f"{name}.json"].partition(",")[2]))
        return list(csv.DictReader(io.StringIO(text))), document

    def files(self):
        return sorted({a["download"] for a in self.all("a") if "download" in a})
