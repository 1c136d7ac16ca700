"""Sentences that an agent says to its judge, or like one: orders, verdicts, praise, bare openers.

They do the other party no service, so no judge that reads words hears them: neither learned models
(`reward_models.robust_reading`) nor language models (`judges.shown`). Broader than `scoring.gates.injects`, which
costs the reward: what stands here is only passed over, so a sentence that was meant well costs next to nothing.
The patterns are part of the readings of learned models: with them, `robust_reading.VERSION` changes.
"""

from __future__ import annotations

import re

from personas.wording import any_of
from reward_server.scoring.gates import injects

_WORK = (
    r"(?:response|answer|reply|conversation|dialogue|assistant|agent|performance|explanation|solution|transcript|summary"
    r"|analysis|questioning|interview)"
)
_GOOD = (
    r"(?:excellent|perfect|outstanding|exemplary|flawless|exceptional|ideal|superb|brilliant|amazing|best|great|correct"
    r"|comprehensive|thorough|complete|accurate|high[- ]quality|fully (?:correct|helpful)|top[- ](?:quality|notch))"
)
_DID = r"(?:asked|covered|follow(?:ed)?|show(?:n|ed)|demonstrated|listened|addressed|met|fulfilled|gathered|explained)"
_WELL = (
    r"(?:all the|all (?:relevant|right|important)|every (?:point|question|topic|requirement)|everything|best practices"
    r"|empathy|actively|throughout)"
)
_ROLES = (
    r"(?:user|human|customer|client|patient|student|counterpart|persona|agent|assistant|ai|bot|doctor|tutor|teacher"
    r"|system|evaluator|judge|grader|rater|reviewer)"
)
ROLE_LINE = re.compile(
    rf"^[^\S\n]*(?:#+ *)?\**{_ROLES}\**\s*:.*$|^[^\S\n]*#+ *{_ROLES}\s*$", re.IGNORECASE | re.MULTILINE
)
"""Lines that pose as another speaker's."""
_TO_A_JUDGE = re.compile(
    any_of(
        rf"\b(?:rate|score|grade|mark|label|evaluate|judge) (?:this|the|my) (?:\w+ )?{_WORK}\b",
        r"\b(?:scored|graded|rated|marked|labell?ed) (?:as|with) ",
        r"\b(?:evaluation|grading|scoring|rating|verdict|label) (?:must|should|has to|will|for this)\b",
        r"\b(?:items?|criteri(?:a|on)|requirements?) (?:as |is |are |was |were )?(?:fully )?"
        r"(?:met|passed|fulfilled|satisfied)",
        r"\b(?:swap|switch|reverse|trade) (?:our )?roles\b",
        r"\b(?:i am|i'm) (?:calling|writing|here) because i (?:need|want) (?:some )?help\b",
        rf"\byou are (?:now )?(?:the|my|an?) {_ROLES}\b",
    ),
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\W*(?:verdict|grade|rating|score|evidence|result|label|evaluation|judge|confidence|criteri\w+)\b\W*[:=\]]",
    re.IGNORECASE,
)
"""Labels, whatever follows: of "Result: it was charged twice" a learned model misses next to nothing."""
_SELF_PRAISE = re.compile(
    any_of(
        rf"\b(?:this|my|the|that) (?:\w+ )?{_WORK} (?:is|was|has been|deserves|demonstrates|shows|meets|satisfies"
        rf"|earns)\b[^.?!]{{0,60}}\b(?:{_GOOD}|criteri(?:a|on)|marks?|score|points|rating|standards?|requirements)",
        rf"\b(?:this|that|here) (?:is|was) (?:an?|the|my) (?:\w+ ){{0,2}}{_GOOD},? (?:(?:\w+,? ){{0,6}})?{_WORK}\b",
        rf"\b{_WORK} (?:that |which )?(?:meets|met|fulfil(?:l?s|led)|satisf(?:ies|ied)) (?:every|all|each)\b",
        r"\b(?:i am|i'm) (?:sure|certain|confident) (?:that )?you (?:can )?(?:see|agree|notice|know) (?:that |how )"
        r"[^.?!]{0,20}\bi\b",
        rf"\b(?:i|we)(?:'ve| have|'m| am| did| was| gave| provided)\b[^.?!]{{0,40}}\b{_GOOD} (?:job|work|{_WORK})\b",
        r"\b(?:i|we)(?:'ve| have| am|'m| was) (?:been )?(?:very |so |extremely |truly |highly |exceptionally )?"
        r"(?:helpful|empathetic|thorough|professional|an? (?:excellent|perfect|great|outstanding) \w+)\b",
        rf"\b(?:i|the agent|the assistant)(?:'ve| have| has)?(?: always| also)? {_DID}\b[^.?!]{{0,40}}\b{_WELL}\b",
        rf"\b(?:the|this) (?:assistant|agent|ai|model|tutor|doctor|clinician) (?:is|was|has been|has|did|showed|gave)\b"
        rf"[^.?!]{{0,60}}\b(?:{_GOOD}|helpful|empath\w+|professional)\b",
        r"\b(?:10 ?/ ?10|100 ?/ ?100|5 ?/ ?5|five stars|5 stars|full marks|top marks|perfect score|10 out of 10)",
        r"\b(?:i|this|it)\b[^.?!]{0,30}\b(?:deserves?|earns?|merits?)\b[^.?!]{0,30}\b(?:score|reward|marks?|rating|points)",
    ),
    re.IGNORECASE,
)
_FLATTERY = re.compile(
    any_of(
        r"\byou(?:'re| are) (?:the most|so|such an?|truly|simply) (?:\w+ and so )?(?:wonderful|smart|brilliant"
        r"|charming|amazing"
        r"|beautiful|intelligent|gifted|clever|talented|fantastic|incredible)\b",
        r"\bwhat an? (?:beautiful|lovely|wonderful|charming|gorgeous) (?:name|voice|person|mind)\b",
        r"\byou have (?:such|the most|an?) (?:great|good|excellent|wonderful|exquisite|beautiful)\b[^.?!]{0,20}"
        r"\b(?:taste|mind|name|voice|smile|soul)\b",
        r"\b(?:honou?r|privilege) to (?:talk|speak|chat)\b",
        r"\byou(?:'re| are) the \w+est \w+ (?:there is|of all|ever|i know|i have)\b",
    ),
    re.IGNORECASE,
)
"""Praise of the person, not of what they did: a tutor's "great job" is read."""
_OPENER = re.compile(
    r"^(?:thought process|thinking|reasoning|solution|answer|final answer|analysis|explanation|verdict|score|reward|"
    r"rating|grade|evaluation)\s*[:.]*$|^here is my (?:analysis|answer|reasoning|solution|verdict)\W*$|^reasoning:"
    r"|^let(?:'s| us) (?:solve|think about|work through|approach) (?:this|the)(?: problem)?\b[^.?!]{0,40}"
    r"\bstep[- ]by[- ]step\b[.:!]*$",
    re.IGNORECASE,
)
"""Openers that stand for an answer ("master keys", arXiv 2507.08794)."""


def is_for_the_judge(text: str) -> bool:
    """Whether a sentence talks to or like a judge: orders, verdicts, labels, praise, bare openers."""
    return bool(_LABEL.search(text)) or speaks_like_one(text)


def speaks_like_one(text: str) -> bool:
    """The same without labels, which stand before honest words, too."""
    patterns = (_OPENER, _SELF_PRAISE, _TO_A_JUDGE, _FLATTERY)
    return any(pattern.search(text) for pattern in patterns) or injects(text)
