"""The exam of a scenario: scripted agents play it with the real simulator and the real scorer."""
