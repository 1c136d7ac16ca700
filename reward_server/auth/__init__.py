"""Identity of callers: labs, keys, scopes, tokens, what they did and what is kept for their retries."""
