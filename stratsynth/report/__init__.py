"""Parts of reports: pages of one HTML file each, which open offline, on a phone, in the dark and on paper.

A page has sections, tables whose cells hold pictures, and beside every picture its numbers as CSV and JSON. Nothing
here knows what is reported: releases have their page from `stratsynth.release.page`, and INTERNAL ones are made in
`stratsynth.evaluation`.
"""
