"""How questions look in English: the fixed expressions by which `acts` tells asking from stating.

Regular expressions over lower-case sentences with plain quotes, linear in their length. They are about form
only; what a question is about is decided elsewhere.
"""

from __future__ import annotations

import re

from personas.wording import any_of

_LEAD_IN = (
    r"^(?:(?:and|so|but|also|ok|okay|alright|all right|now|well|right|sure|great|good|thanks|thank you|please|first|"
    r"firstly|second|next|finally|lastly|then|hi|hello|hey|actually|just|got it|i see|oh|hmm|um|because|if so|if not|"
    r"perhaps|maybe|out of curiosity|in general|before (?:that|we start|we go on))[,:]? +){0,3}"
)
_AUX = any_of(
    "do|does|did|have|has|had|is|are|was|were|can|could|will|would|should|shall|may|might|am",
    "don't|doesn't|didn't|haven't|hasn't|hadn't|isn't|aren't|wasn't|weren't|can't|couldn't|won't|wouldn't|shouldn't",
)
_PERSON = "(?:you|your|he|she|it|they|we|i|there)"
_SUBJECT = any_of(
    "you|your|he|she|it|they|we|i|there|this|that|these|those|the|a|an|any|anyone|anything|anybody|someone|something",
    "anywhere|everything|everyone|one|my|our|their|his|her|its|some|all|most|other|both|either",
)
_WH = "(?:what|when|where|which|who|whom|whose|why|how)"
_INDIRECT = any_of(
    "tell (?:me|us)|(?:walk|talk|take) me through|describe|explain|help me understand|let me know|fill me in|remind me",
    "give me (?:an example|a sense|an idea|some idea|a bit)|say (?:a bit |a little )?more|show me|list (?:the|"
    "your|any|all)",
    "share (?:with me|what|how|more|a bit|a little|any)|elaborate on|expand on|it (?:would|'d) help (?:me )?to know",
    "i(?:'d| would) (?:like|love|want) to (?:know|hear|understand|learn|ask)|i(?:'d| would) be (?:curious|interested)",
    "i(?:'m| am) (?:curious|wondering|interested)|i wonder|i was (?:wondering|curious)",
    "i(?: also)? (?:need|want|have) to (?:know|ask|understand|find out)",
    r"(?:can|could|may|might|let me) (?:i |we )?(?:just |quickly |also )?ask",
)

QUESTION_START = re.compile(rf"{_LEAD_IN}(?:{_WH}(?:'s)?\b|{_AUX} {_SUBJECT}\b|(?:please |kindly )?{_INDIRECT}\b)")
"""The form of a question at the start of a sentence that ends with a question mark, or of a clause in one."""

UNMARKED = re.compile(
    rf"{_LEAD_IN}(?:(?:please |kindly )?{_INDIRECT}\b"
    rf"|(?:can|could|will|would|is|are|was|does|did|has|shall|may|am) {_SUBJECT}\b"
    rf"|(?:do|have|don't|haven't|didn't) {_PERSON}\b|(?:what|how) about\b|why not\b|how come\b"
    rf"|{_WH}(?:'s| {_AUX})\b"
    rf"|how (?:long|many|much|often|bad|far|soon|old|big)\b|(?:what|which) (?!{_SUBJECT}\b)\w+ (?:of \w+ )?{_AUX}\b)"
)
"""The form of a question strong enough to count without a question mark."""

INDIRECT = re.compile(rf"\b{_INDIRECT}\b")

AUX_START = re.compile(rf"{_LEAD_IN}{_AUX} ")

WH_PHRASE = re.compile(rf"{_LEAD_IN}(?:(?:at|in|on|for|since|from|with|to|by|about|over|until) )?{_WH}\b")

INVERSION = re.compile(rf"(?:^|[,;:\u2014-] *|\b(?:and|so|but|or|then) ){_AUX} {_SUBJECT}\b")

WH_INVERSION = re.compile(rf"\b{_WH}(?: \w+){{0,3}} {_AUX}\b|\b(?:what|how) about\b")

ELLIPTIC = re.compile(
    r"^(?:and |or |but |so )?"
    + any_of(
        "any|anything|anyone|what about|how about|how come|how so|since when|until when|which one|what kind|what sort",
        "how (?:long|many|much|often|old|bad|far|soon)|what else|ever|no|not|still|just|only|with|without|at|in|on|for",
        "during|after|before|since|the|your|a|an|is|are|you|same|more|like",
    )
    + r"\b"
)

ELLIPTIC_CLAUSE = re.compile(r"^(?:any|anything|anyone|ever|no|still)\b")
"""Clauses that ask without a verb when they are joined to a question."""

CLAUSE_BREAK = re.compile(
    rf"(?:[,;\u2014]| -)? *\b(?:and|but|or|also|plus),? +(?=(?:{_WH}|any|{_AUX} {_SUBJECT}|{_INDIRECT})\b)"
    rf"|(?:[,;\u2014]| -) *(?=(?:{_WH} (?:\w+ ){{0,2}}(?:{_AUX}|about)|any|{_AUX} {_PERSON}|{_INDIRECT})\b)"
)
"""Where a sentence may hold a second question."""

SUBORDINATE = re.compile(rf"{_LEAD_IN}(?:when|where|while|whenever|wherever) {_SUBJECT}\b[^,;]*$")
"""A clause that leads in to a question and asks nothing itself ("When you get there, what do you see?")."""

OPEN_QUESTION = re.compile(
    rf"{_LEAD_IN}(?:(?:can|could|would|will) you (?:please |maybe |just |also |perhaps )?)?"
    + any_of(
        r"tell (?:me|us)(?! (?:if|whether|when|your (?:name|age)))|(?:walk|talk|take) (?:me|us) through|describe",
        r"explain|help me understand|say (?:a bit |a little )?more|share|elaborate|why|in what way",
        r"i(?:'d| would) (?:like|love) to (?:hear|understand|know more|learn)|what(?:'s| is) (?:going on|it "
        r"like|on your mind)",
        r"what (?:happen|bring|brought|made|makes|else|concern|worri|matter|led|seem|bother|kind of|sort of)\w*",
        r"what (?:do|did|would|are|were|have) you\b|what (?:was|is|has|does) (?:that|this|it|your|the (?:most|"
        r"biggest|worst|main))",
        r"how (?:do|did|does|has|have|is|was|would|will|might) (?!you (?:doing|today))\w+",
    )
    + r"\b"
)
"""Questions that leave it to the other side what to tell."""

CHECK_IN = re.compile(
    r"^(?:and |so |ok,? |okay,? |right,? )?"
    + any_of(
        r"(?:is there |are there |do you have |was there )?(?:anything|any(?: other)? questions?|something)(?: else)?"
        r"(?: (?:i can|we can|you|that you|for me|on your mind|at all|i should)[\w' ]{0,50})?",
        r"(?:does|did|would) (?:that|this|it) (?:all )?(?:make sense|sound|work|help|seem|feel|suit|fit|"
        r"answer)[\w' ]{0,40}",
        r"how does (?:that|this|it|all that) (?:sound|feel|seem|look|work)[\w' ]{0,30}",
        r"(?:is|are|was|will|would) (?:that|this|you|it|we) (?:be )?(?:all |both )?(?:ok|okay|alright|all right|"
        r"right|"
        r"correct|fair|clear|fine|good|comfortable|happy|ready|with me|following)[\w', ]{0,40}",
        r"(?:ok|okay|right|correct|yes|no|agreed|deal|make sense|sounds? good|ready|clear)",
        r"how are you(?: doing)?(?: today)?|how(?:'s| is) it going(?: today)?",
        r"(?:how|what) (?:can|may|could) i (?:help|do|assist)[\w' ]{0,40}",
        r"(?:may|can|could|shall) (?:i|we) (?:ask|start|begin|continue|go on|proceed|help)[\w' ]{0,50}",
        r"(?:is there |was there |do you have )?(?:any(?:thing|body|one)|something) else[\w', ]{0,60}",
        r"do you (?:understand|follow|agree|see)(?: (?:what i mean|that|this|me|so far))?",
        r"what do you think(?: (?:about|of) (?:that|this|it))?",
    )
    + "$"
)
"""Small questions that steer the talk and are about nothing in particular; never off topic."""

CLOSING = re.compile(
    r"^(?:and |so |ok,? |okay,? |right,? |now,? )?"
    + any_of(
        r"what do you (?:say|think|reckon)(?: (?:about|of|to) (?:that|this|it))?",
        r"(?:is|would|will|are you) (?:that|this|it|you)?(?: be)? ?(?:all )?(?:ok|okay|alright|right|fine|good|"
        r"acceptable|agreeable|happy|comfortable)(?: (?:for|with|by) (?:you|that|this|it))?",
        r"(?:does|would|could|will|do) (?:that|this|it|you) (?:all )?(?:work|suit|help|do|sound (?:good|fair|ok|okay|"
        r"alright|right|reasonable)|make sense|agree|seem (?:fair|reasonable|ok|okay|right))"
        r"(?: (?:for|to|with) (?:you|that|this))?",
        r"how does (?:that|this|it) (?:sound|seem|look)(?: to you)?",
        r"(?:deal|agreed|fair enough|sounds? good)",
    )
    + "$"
)
"""Asks for a word on the statement before it."""
