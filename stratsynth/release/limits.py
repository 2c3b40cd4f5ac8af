"""Limits of a release, what it does not protect, in sentences: the one place where they are written.

The certificate (`not_protected`), the terminal, the report and the plan of a fit take them from here, and SECURITY.md
repeats `ALWAYS` word for word. Of two linked tables the unit is another, and so are two of them (`LINKED`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.weights.sources import SHARE_SOURCES

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

ALWAYS = {
    "Several rows of one person": "Unless the schema's unit names the column of persons and how many rows each may "
    "have, one record is protected, and not all records of a person together.",
    "Records over several lines": "In a CSV file a record is one physical line. Whoever has several lines, or line "
    "breaks within a field, is protected line by line.",
    "Households and other circles": "The guarantee is for one unit, a record or a person. The larger a household, a "
    "family or a firm is, the less is hidden of what all its members have in common.",
    "Other releases about the same people": "Every release about them, whoever made it and with whatever software, "
    "adds to what can be learned. Only those of the account that the certificate names are added up.",
    "Other accounts": "The same people in another data file, or under another ledger, have another budget, of which "
    "the account that the certificate names does not know.",
    "Inputs declared public": "The schema with its levels, bounds and rules, the list of groups, the declared size, "
    "the settings, and weights, priors and citations were taken as they were given. If one was read off the "
    "confidential data, what it says of them is not protected.",
    "What is true of people in general": "If a release shows that most people of a group have a job, anybody may "
    "guess that of one of them, whether or not that person was in the data.",
    "Running time, memory and the machine": "Somebody who measures how long a fit takes or how much memory it needs, "
    "who has access to the machine, or who can roll back the ledger together with all the files beside it, may learn "
    "more.",
    "Not audited": "Nobody outside the project has audited stratsynth. Its own tests are evidence, not proof.",
    "Not legal anonymity": "Epsilon and delta do not decide whether a release is anonymous, or may be published, "
    "under any law.",
}
"""Limits of every release, by subject."""
LINKED = {
    "Records over several lines": "In a CSV file a row is one physical line. A row with a line break within a field is "
    "read as several, each of the {parent} that its own key names, if it names one.",
    "Several rows of one person": "One {parent} is protected with all its {child} rows. Who has rows in several, or is "
    "there under several keys, is protected in each by itself, and not in all of them together.",
    "Households and other circles": "The guarantee is for one {parent}, with all its {child} rows. The larger a circle "
    "that goes beyond one, such as a family in several places, the less is hidden of what all its members have in "
    "common.",
}
"""The sentences on the unit that releases of two linked tables have in place of those of `ALWAYS`, by subject."""
OF_THIS = {
    "declared_size": (
        "Declared size",
        "The number of records that was declared, or what their weights come to. It was taken for public knowledge.",
    ),
    "row_count": ("Number of records", "How many records there are: the exact number is public with the columns."),
    "exact_totals": (
        "Exact totals",
        "The exact totals of the private rows that rows are raked to are in the release without noise.",
    ),
    "undeclared": (
        "Undeclared disclosures",
        "Whatever the mechanism discloses without noise: its author has not declared that it is nothing.",
    ),
    **{name: words for source in SHARE_SOURCES for name, words in source.discloses.items()},
}
"""Subject and sentence of each name under a certificate's `unprotected`."""
KEY = "not_protected"
"""Key of the sentences in a certificate; those of version 0.1 have none."""


def disclosed(certificate: Certificate) -> dict[str, str]:
    """Return a dict from subject to sentence: what a certificate's release discloses without noise; {} for nothing."""
    found = {}
    if named := certificate.public_columns:
        found["Public columns"] = (
            f"{', '.join(named)}: the release may show them as they are, record by record. Only what the other columns "
            "say of a record is protected, and not whether it is there."
        )
        if certificate.record is not None:
            found["Public columns"] += (
                " A line of the file that cannot be read as a record is left out, also where a protected value is "
                "why, as by a stray quote; Parquet has no such lines."
            )
    prior = certificate.prior
    if prior is not None and prior.tables:
        tables = dict.fromkeys(table.citation for table in prior.tables)
        found["Tables of the prior"] = f"{'; '.join(tables)}. They were taken for public as they are."
    if prior is not None and prior.rows is not None:
        found["Rows of the prior"] = (
            f"{prior.citation}. They were taken for public, and rows of the release may be rows of it as they "
            "are, beside rows that the mechanism has made up: the guarantee is about the data that were fitted, not "
            "about whoever is in the prior."
        )
        if prior.origin == "release":
            found["Rows of the prior"] += (
                " It is a release itself: who is in both is protected by both guarantees together, which add up only "
                "where unit and neighbours are the same."
            )
    if certificate.benchmark is not None:
        cited = dict.fromkeys(table.citation for table in certificate.benchmark.tables if not table.exact)
        if cited:
            found["Published totals"] = (
                f"{'; '.join(cited)}. They were taken for public as they are, and rows have them."
            )
    said = (
        OF_THIS.get(item, (item, f"{item[:1].upper()}{item[1:]}."))
        for item in certificate.unprotected
        if item != "public_columns"
    )
    return found | dict(said)


def limits(certificate: Certificate) -> dict[str, str]:
    """Return a dict from subject to sentence: what a certificate's guarantee does not cover, its own limits first."""
    found = {}
    if not certificate.private:
        found["Everybody"] = "This is no private release: it protects nobody."
    if certificate.unverified:
        found["Unverified parts"] = f"The guarantee rests on {', '.join(certificate.unverified)}."
    found |= disclosed(certificate) | ALWAYS
    if not isinstance(certificate.unit, str) and certificate.unit.tables is not None:
        parent, child = certificate.unit.tables
        found |= {about: sentence.format(parent=parent, child=child) for about, sentence in LINKED.items()}
    return found


def sentences(certificate: Certificate) -> list[str]:
    """Return a list of texts "subject: sentence", the `limits` of a certificate, for its entry `not_protected`."""
    return [f"{about}: {sentence}" for about, sentence in limits(certificate).items()]
