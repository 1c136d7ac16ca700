"""Examines scenarios: plays their scripted agents and says what is wrong."""
