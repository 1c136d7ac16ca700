"""Background work that survives its process: files, jobs, and the workers that do them."""
