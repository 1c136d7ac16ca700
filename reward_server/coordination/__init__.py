"""What requests share while they run: who is asking, how often, and which turns are being answered."""
