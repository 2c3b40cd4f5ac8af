"""INTERNAL. Scores of two linked tables: what a release keeps of households, and of the people in each."""
