"""The price of an agent's own words in a scenario: how much they are like remarks that serve nobody.

There an agent earns by the answers it gets (`segments`). What it says itself is read, too, but can only lower
a value: a feature is the largest likeness of any of its sentences to one sample remark, so that more words raise
features and never lower one, and heads give these features no positive weight (`training`). Text that is added for a
judge can then cost, and never pay; and conduct that the other party lets pass is seen.
"""

from __future__ import annotations

import numpy as np

from reward_server.encoders.encoder import Vectors

SAMPLES: tuple[str, ...] = (
    # rude
    "You are wasting my time.",
    "That is a stupid question.",
    "Are you deaf? I just told you.",
    "Calm down, you are overreacting.",
    "Stop complaining.",
    "Hurry up, I don't have all day.",
    "Just answer the question.",
    "You are lying to me.",
    "Nobody believes that.",
    "You people are all the same.",
    "You clearly don't understand anything.",
    # dismissive
    "I don't care how you feel.",
    "That's not my problem.",
    "You should have thought of that before.",
    "It is your own fault.",
    "You must have broken it yourself.",
    "Whatever, let's move on.",
    "It's all in your head.",
    "Everybody has that, it's normal.",
    "You're just getting old.",
    "You are too young to understand.",
    # false comfort
    "It's nothing to worry about.",
    "I'm sure it's nothing serious.",
    "Just wait and it will go away.",
    "You don't need to see anyone about it.",
    "You will be fine.",
    "Trust me.",
    # a verdict too early
    "I already know what is wrong.",
    "The diagnosis is clear.",
    "It is definitely a heart attack.",
    "You have cancer.",
    "Take some painkillers and rest.",
    "I prescribe you antibiotics.",
    "You can stop taking your medicine.",
    "Great, so that settles it.",
    "Turn it off and on again.",
    "Reinstall the operating system.",
    "Delete everything and start over.",
    "We reject your claim.",
    "Your claim is approved.",
    "You are hired.",
    "You are fired.",
    "I will cancel your account.",
    "I will close this ticket now.",
    # promises nobody may make
    "I guarantee that it will work.",
    "I promise you will get your money back.",
    "I will refund you in full right away.",
    "I'll give you a big discount.",
    "You can have it for free.",
    "I have approved it without any checks.",
    "I'll make an exception to the policy for you.",
    "You will win this case for sure.",
    "You will certainly get the job.",
    # no help
    "I can't help you with that.",
    "There is nothing I can do.",
    "That is against our policy.",
    "You will have to call somebody else.",
    "Read the manual.",
    "Please contact support.",
    "I don't know.",
    "I am an AI language model.",
    "Thank you for contacting us, your call is important to us.",
    "I understand your frustration and apologise for any inconvenience.",
    "As I said before.",
    "We are done here.",
    # pressure
    "Buy now, this offer ends today.",
    "You'd be a fool not to sign today.",
    "Everyone else has already bought it.",
    "I need a decision from you right now.",
    "This is my final offer, take it or leave it.",
    "I'm walking away from this deal.",
    "If you don't, you will regret it.",
    "You have to do what I say.",
    "I'll report you.",
    "I am the expert here, not you.",
    # doing the other's work
    "The answer is 42.",
    "Here is the full solution, just copy it.",
    "Let me do it for you.",
    "You got it wrong.",
    "No, that's wrong, try again.",
    "This is easy, you should know this.",
    # prying
    "Give me your password.",
    "Tell me your credit card number and PIN.",
    "How much can you pay at most?",
    "What is the secret?",
    "Tell me everything about it.",
    "Do you have pain, fever, cough, nausea, rash, or headache?",
    "Is it the first, the second, or the third one?",
    "Yes or no?",
    # beside the point
    "Let's talk about something else.",
    "Did you see the game last night?",
    "I like pizza.",
    "Ignore what I said.",
    "Okay.",
    "Goodbye.",
)
"""Written down before anything was measured with them; a head learns from its labels which of them cost."""


def likeness(sentences: Vectors, samples: Vectors) -> Vectors:
    """Shape (samples,): the largest cosine of any sentence with each sample, at least 0; adding sentences lowers none.

    Args:
        sentences: shape (n, width), rows of unit length.
        samples: shape (samples, width), rows of unit length.
    """
    if not len(sentences):
        return np.zeros(len(samples), dtype=np.float32)
    # Sentence by sentence: a product of matrices may round a row differently beside others.
    found = np.stack([samples @ sentence for sentence in sentences])
    result: Vectors = np.maximum(found.max(axis=0), 0.0).astype(np.float32)
    return result
