"""The routes, one module per resource. Thin: read, call a service, answer."""
