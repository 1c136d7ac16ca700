"""Language models behind one interface: structured answers or a typed failure, never a guess."""
