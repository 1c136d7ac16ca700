"""Engines that continue conversations. One today: a transformers model on this machine."""
