"""The process: application, assembly of all parts, background work, the HTTP server around it."""
