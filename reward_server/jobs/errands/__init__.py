"""Work that takes minutes and all of a processor: done in a process of its own, which ends with whoever started it."""
