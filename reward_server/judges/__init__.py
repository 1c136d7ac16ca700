"""Judges that decide a criterion: exact state, rules, the text encoder."""
