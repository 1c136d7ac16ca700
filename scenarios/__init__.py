"""What is tested: collections of scenarios, each with a public and a private half."""
