"""Two ranges of seeds that never meet: what is trained on, and what is measured on."""

FIRST_HELD_OUT_SEED = 2**40
