"""What a reader is shown of a release: the page `report.html`, and the certificate in words."""
