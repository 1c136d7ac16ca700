"""Scenarios that labs bring: pushed, checked as a job, versioned, and private to the lab."""
