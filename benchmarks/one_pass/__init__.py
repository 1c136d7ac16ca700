"""Reading the persona's line and the whole turn in one pass of the encoder: what it understands, and what it costs."""
