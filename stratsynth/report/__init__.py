"""Reports: pages of one HTML file each, which open offline, on a phone, in the dark and on paper.

`release.release_page` makes the one that may be published, from the certificate, the measurements and the schema
alone. INTERNAL ones are made elsewhere, from the same parts: a page of sections, tables whose cells hold pictures,
and beside every picture its numbers as CSV and JSON.
"""
