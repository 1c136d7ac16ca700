"""Environments for other trainers: one module for each, which imports that trainer alone."""
