"""What requests share: who is asking, how often, which turns are being answered, which answers were given."""
