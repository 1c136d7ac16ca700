"""Fitting of models: reader, reward models, calibration, agreement. The serving process never imports it."""
