"""Long-running work: the scenario exam and offline evaluation."""
