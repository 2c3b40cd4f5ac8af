"""The driver: the only code that holds private rows. Mechanisms ask, it answers."""
