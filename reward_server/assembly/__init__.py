"""Parts of the composition root: each builds one piece of a server from its settings. `app` puts them together."""
