"""Pages of a release: `report.html`, and the certificate in words."""
