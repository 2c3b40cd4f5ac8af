"""`stratsynth means`: a release's means as a table and a picture."""
