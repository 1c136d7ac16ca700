"""How well a persona understands turns in scenarios that users of the product wrote, not its makers.

The collections and turns are data: nothing is trained or tuned on them.
"""
