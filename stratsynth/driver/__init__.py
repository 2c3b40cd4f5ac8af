"""The driver: the only code that holds private rows. It answers the questions of mechanisms."""
