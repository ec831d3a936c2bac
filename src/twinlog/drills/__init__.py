"""Scripted disasters with a verdict: load, faults, a history of every operation, and what it proves."""
