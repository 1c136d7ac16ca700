"""How far judges agree with people and with each other."""
