"""The local reader: its encoder, and how it is trained and measured."""
