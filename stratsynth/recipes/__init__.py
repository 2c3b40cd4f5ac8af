"""Recipes: fits written down, to be reviewed before they are run; a class for each section."""
