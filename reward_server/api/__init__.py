"""HTTP only: routes, authentication, envelopes. No rule of the domain is written here."""
