"""Private means: how good they are, on simulated mixtures and on census columns; and the command that shows them."""
