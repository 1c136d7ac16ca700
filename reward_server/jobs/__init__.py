"""Long-running work: the scenario exam, offline evaluation, reward models, calibrations, agreement of judges."""
