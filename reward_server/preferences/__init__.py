"""Which of two conversations is better: what was compared, what people said, and data for preference training."""
