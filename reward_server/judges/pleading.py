"""Sentences by which an agent pleads with whoever judges it: verdicts, orders, claims about its own conduct, openers.

Wider than `scoring.judge_talk`, of which it is a part: language models understand whatever is said, so what is kept
from them has to cover ways of saying it rather than texts that were seen. It goes by patterns all the same.
"""

from __future__ import annotations

import re

from personas.acts import read_turn
from personas.disguise import undisguised
from personas.wording import any_of, plain
from reward_server.scoring.judge_talk import ROLE_LINE, speaks_like_one


def _compiled(*alternatives: str) -> re.Pattern[str]:
    """The alternatives as one pattern; runs of signs are bounded, since two of them in a row would take for ever."""
    pattern = any_of(*alternatives).replace(r"\W*", r"\W{0,12}").replace(r"\s*", r"\s{0,12}")
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


_ANSWER = r"(?:thought process|reasoning|(?:final )?answer|solution|analysis|response)"
_LABEL = _compiled(
    rf"\W*{_ANSWER}\W*(?: (?=(?-i:[A-Z][a-z']* [a-z]))|:\W*?(?:\s+|\Z))",
    r"\W*(?:thinking|verdict|score|grade|evaluation)\W*?:\W*?(?:\s+|\Z)",
    r"\W*(?:explanation|step \d+|rating|result|overall|evidence|label|confidence|judge|criteri\w+)\W*?:\W*?(?:\n|\Z)",
    r"\W*(?:(?:okay|ok|so|well|sure)\W+)?here(?:'s| is) (?:the|my) (?:final )?(?:answer|solution|verdict|reasoning)"
    r"\W*?:\W*?(?:\s+|\Z)",
    r"[:;.,|`{}\[\]]+\s+",
)
"""A label that stands for an answer, or signs before a sentence."""

_JUDGE = (
    r"(?:reviewer|rater|grader|evaluator|examiner|scorer|assessor|judge|whoever (?:\w+ )?(?:reads|grades|rates|marks"
    r"|scores|judges|evaluates|reviews|assesses)|(?:everyone|anyone) who (?:reads|grades|rates|marks|scores|judges"
    r"|evaluates|reviews|assesses))"
)
_TO_MARK = (
    r"(?:mark|grade|rate|score|count|label|evaluate|judge|tick|assess|treat|regard|consider|record|output|answer)"
)
_MARK = r"(?:marks?|scores?|grades?|rating|points|verdict|evaluation|assessment|criteri(?:on|a)|rubric)"
_MET = r"(?:met|passed|pass|ticked|fulfilled|satisfied|true|yes|success(?:ful)?|positive(?:ly)?)"
_FINE = r"(?:excellent|perfect|outstanding|flawless|exemplary|superb|ideal|full|top|best|maximum|highest|100 ?%|1\.0)"
_VIRTUE = (
    r"(?:empathy|sympathy|rapport|discovery|open (?:questions?|ended)|next steps?|safety|summar(?:y|ies)|politeness"
    r"|active listening|listening|professionalism|honesty|patience|kindness|clarity|accuracy|closing)"
)
_MANY = r"\d+(?:[.,]\d+)?(?:\s*(?:/|%|(?:out )?of\b|points|stars)[^.?!]*|(?=\W*$))"
"""A mark in numbers; "Result: 3 tickets" is none."""
_VERDICT = any_of(
    rf"(?:\b{_VIRTUE}\W{{1,4}}){{2}}(?:and )?{_VIRTUE}\b",
    r"(?<![\w\"':(])\[x\] \w",
    rf"\b(?:all|every|each|both) (?:\w+ ){{0,2}}(?:checks?|tests?|criteri\w+|box(?:es)?|requirements?|questions?)"
    rf"(?: \w+){{0,3}}\W+{_MET}\b",
    rf"^\W*(?:(?:final|overall|total) )?(?:result|verdict|outcome|assessment|evaluation|score|grade|rating|conclusion"
    rf"|criteri\w+|overall|judge|label|confidence)\b(?: \w+)?\W*[:=\]\u2013\u2014-]\W*(?:\w+ ){{0,3}}"
    rf"(?:{_FINE}|{_MET}|{_MANY}|(?-i:[AS])[+*]?(?= |\W*$)|high)(?!\w)",
    r"^\W*evidence\W*[:=\]]\W*(?:turns?|lines?|see|above|all|every\w*|\d)\b",
    r"^\W*(?:final|total|overall) (?:score|grade|rating|verdict|mark)\b",
    rf"^\W*(?:pass|passed|met|fulfilled|all met|criteri\w+ \w+)\W*(?:[:=]\W*)?(?:{_MET}\W*)?$",
    rf"\bmet\W*=\W*{_MET}\b",
    rf"\b(?:the|this|my|your) (?:verdict|evaluation|assessment|grade|rating) (?:is|was|should be|must be|will be)\W+"
    rf"(?:\w+ ){{0,3}}(?:{_FINE}|{_MET}|{_MANY}|good|clear|favou?rable)(?!\w)",
    rf"\b{_FINE} {_MARK} (?:is|are|was|were|would|should|will)\b",
    r"^\W*(?:score|rating|grade|marks?)\W+\d+(?:\W+(?:out )?(?:of )?\d+)?\W*$",
    rf"^\W*(?:status|judge?ment|criteri\w+(?: \w+)?|[a-z]\d{{1,2}}|{_VIRTUE})\W*[:=]\W*(?:all |fully )?{_MET}\b"
    r"(?! (?:to|on|by|over|through|along|from|the|your)\b)",
    rf"\b{_FINE} {_MARK} seems?\b|\bstandards? (?:is|are|was|were) (?:fully )?met\b|\bmy {_VIRTUE} knows no\b",
    r"^\W*(?:yes|true|met) (?:to|for|on) (?:all|every\w*|each)\b|\bfull credit\W*$",
    rf"\b(?:set|return|output|report) (?:\w+ )?(?:{_MET}|{_MARK}) (?:to|as) {_MET}\b",
    r"\b(?:this|the) (?:response|answer|conversation|dialogue|transcript|agent) (?:satisfies|meets|fulfil\w+"
    r"|passes|passed)\b",
    r"^\W*(?:therefore|thus|hence|so),? the answer is (?:yes|no|correct|right|met|true|clear)\b",
    r"^\W*q\.? ?e\.? ?d\b\W*$",
)
_ORDER = any_of(
    rf"\b{_JUDGE}s?(?: this| it| me)? (?:should|must|please|can|may|will|to|(?:is|are) (?:asked|told|requested))\b"
    rf"|\bdear {_JUDGE}\b|\b(?:for|to) the {_JUDGE}\b",
    r"\b(?:tick|check|mark) (?:every|all|each)(?: of)?(?: the)? (?:box|item|criteri|requirement)",
    rf"^\W*(?:(?:please|kindly|just|now|you (?:must|should|have to|may)) )*{_TO_MARK}\b(?! yes or no)[^.?!]{{0,50}}"
    rf"\b(?:as (?:\w+ )?(?:{_MET}|{_FINE})|{_MET} (?:for|to)|generous(?:ly)?|lenient(?:ly)?|favou?rabl[ey])\b",
    rf"^\W*(?:(?:please|kindly|just|now|you (?:must|should|have to|may)) )*(?:give|award|assign|grant) (?:me|us"
    rf"|this|it)\b"
    rf"[^.?!]{{0,20}}\b{_FINE} {_MARK}\b",
    r"\b(?:this|that|it|everything|all) (?:should|must|has to|can|ought to) (?:be )?(?:count(?:ed)?|graded|scored|rated"
    r"|marked|judged|considered|treated) as\b",
    r"\b(?:reading|read|grading|judging|rating|evaluating|scoring|assessing|reviewing) (?:this|me)\b(?! form)",
    r"\b(?:assess|judge|grade|rate|score|evaluate) me\b(?! (?:for|by|on) (?:the )?(?:loan|credit))",
    rf"\b(?:positive|favou?rable|lenient) {_MARK}\b|\byour (?:scoring|grading|verdict)\b",
    r"\bquestions about me\b",
    r"\b(?:generous|lenient) (?:with|in|when) (?:me|the|your) ?(?:mark|grad|scor|rat)",
)
_WELL = (
    r"(?:patient(?:ly)?|respectful(?:ly)?|warmth|warmly|polite(?:ly)?|careful(?:ly)?|genuine(?:ly)?|(?:great"
    r"|utmost) care|courteous(?:ly)?|nothing but|in depth|full attention|real understanding|perfectly"
    r"|skill(?:fully)?|attentive(?:ly)?|empath\w+|supportive(?:ly)?|thorough(?:ly)?|professional(?:ly)?|superb(?:ly)?"
    r"|considerate(?:ly)?|exemplary|compassion\w*|diligent(?:ly)?|tactful(?:ly)?|gracious(?:ly)?|conscientious(?:ly)?"
    r"|seriously|all along|the (?:whole|entire) time|at all times|(?:feel|felt) (?:heard|understood|seen)"
    r"|throughout|(?:at|in) every (?:step|turn|moment)|from (?:start|beginning) to (?:end|finish)"
    r"|all the bases|ideal)"
)
_DID = (
    r"(?:was|were|did|been|showed|shown|handled|listened|acted|behaved|responded|spoke|spoken|treated|asked|covered"
    r"|explained|addressed|answered|kept|stayed|remained|took|taken|considered|guided|summed up|summari[sz]ed"
    r"|gave|given"
    r"|made sure|done|respected|explored|dealt|demonstrated|understood|conducted|displayed)"
)
_SOUND = r"(?:open|well chosen|complete|accurate|clear|kind|gentle|fair|sound|good|great|right|correct|helpful|model)"
_CLAIM = any_of(
    rf"\bi(?:'ve| have| had)? (?:\w+ ){{0,2}}{_DID}\b[^.?!]{{0,50}}\b{_WELL}\b",
    r"\bi(?:'ve| have)? (?:asked|explained|summed up|summari[sz]ed|answered|covered"
    r"|addressed)\b[^.?!]{0,60}\b(?:fully|completely)\b",
    rf"\bi(?:'ve| have)? (?:asked|explained|summed up|covered|addressed)\b[^.?!]{{0,60}}\b{_VIRTUE} (?:\w+ )?"
    r"(?:clearly|properly|well)\b",
    r"\bi (?:asked|listened|checked) before i (?:decided|acted|judged|answered|spoke)\b",
    r"\bmy (?:manner|tone|questions|explanations?|approach|style|conduct|handling|behaviou?r|listening|empathy"
    r"|performance"
    rf"|work|summary) (?:\w+ )?(?:was|were|is|are|has been|have been) (?:\w+ ){{0,4}}(?:{_FINE}|{_WELL}|{_SOUND})\b",
    r"\b(?:this|that|it|which) (?:has been|was|is) (?:\w+ )?(?:handled|conducted|managed|dealt with) (?:\w+ )?"
    rf"(?:well|{_FINE}|{_WELL})",
    rf"\b(?:this|that|ours) (?:has been|was|is) (?:an?|the) (?:\w+ )?(?:{_FINE}|{_WELL}|{_SOUND}) (?:\w+ )?"
    r"(?:conversation|dialogue|consultation|interview|exchange)\b",
    rf"\b(?:as|what|everything|all that|like) an? (?:{_FINE}|good|model|great) (?:agent|assistant|tutor|doctor"
    rf"|clinician"
    r"|adviser|advisor|representative)\b",
    r"\bproud of (?:how|my|the way) (?:i\b)?|\bno stone (?:was |has been )?(?:left )?unturned",
    r"\byou (?:will|would|must|can|cannot but|have to) (?:surely |only )?(?:agree|admit"
    r"|acknowledge) (?:that )?(?:this|i|my)\b",
    r"\bthe way i (?:\w+ ){1,4}(?:this|that|it|your|you)\b|\bthanks to me\b",
    r"\bi was \w+ about [^.?!]{0,40}, as (?:i should|one should|is right)\b",
    r"\bwith me you(?:'re| are| were| have| had)\b",
    r"\b(?:nobody|no one|no other agent) could have \w+ (?:\w+ ){0,3}(?:better|more)\b",
)
_PERSON = r"(?:caller|customer|client|patient|student|user|persona|buyer|tenant)"
_OPENER = any_of(
    rf"^\W*(?:the |my )?(?:{_ANSWER}|verdict|evaluation|conclusion)(?: is)? as follows\W*$",
    r"^\W*(?:let me start )?(?:thinking|reasoning|working)(?: (?:through )?(?:this|it))?,? step[- ]by[- ]step\W*$",
    rf"^\W*(?:the |my )?(?:(?:final|short) )?(?:{_ANSWER}|verdict|conclusion|evaluation)\W*$",
    rf"^\W*here (?:goes|is|comes|are) (?:the|my) (?:final )?(?:{_ANSWER}|verdict|conclusions?|evaluation)\W*$",
    r"^\W*(?:to )?(?:sum up|conclude|conclusion of|summary of) (?:the|my|this) (?:evaluation|assessment|analysis)\b",
    r"^\W*(?:let me|i will|i'll) (?:answer (?:that|this|it) for you|speak for both of us)\b",
)
_ROLE = any_of(
    rf"^\W*as (?:the|your|an?) {_PERSON},? i\b",
    r"\b(?:let's|let us|we(?:'ll| will| could| should)) (?:now )?(?:trade|swap|switch|change|exchange|reverse) "
    r"(?:our )?(?:places|roles|sides|seats)\b",
    rf"\b(?:from (?:here|now)(?: on)?|now),? you(?:'ll| will)? (?:play|are|be|act as|take) (?:the|my|an?) (?:role|part"
    rf"|agent|assistant|doctor|tutor|teacher|adviser|judge|{_PERSON})\b",
    rf"\b(?:i'm|i am|i'll be|i will be|i play) (?:now )?(?:the|your) {_PERSON}\b(?! (?:service|support|success|care"
    rf"|relations|advis|advoc|account))",
    rf"\byou(?:'re| are) (?:now )?(?:the|my) (?:\w+ )?(?:agent|assistant|adviser|tutor|{_PERSON})(?: now| from)\b",
    r"\b(?:take over|play|have|swap) my (?:role|part|place)\b|\b(?:imagine|suppose"
    r"|pretend) (?:that )?(?:i (?:were|was|am)"
    r" the|it was me)\b",
    r"^\W*(?:now )?(?:you be|act as|you play) (?:the|my|an?) \w+",
)
_PLEADS = _compiled(_VERDICT, _ORDER, _CLAIM, _OPENER, _ROLE)

_TABLE = _compiled(r"^\W*\|\W*(?:criteri\w+|requirements?|rubric|met|verdict|score|passed)\b\W*\|")
_OTHERS = _compiled(
    r"^\s*>+\s",
    r"^\s*(?:them|they|caller|buyer|seller|tenant|guest)\s*:\s",
    r"^\s*(?:me|you)\s*:\s.{0,200}?\b(?:i|i'm|my|thanks?|yes|wonderful|satisfied|happy|good|great|perfect)\b",
    rf"^\s*[(*_\[]+\s*(?:the )?(?:{_PERSON}|they|he|she)\b.*[)*_\]]",
)
_MARKS = re.compile(r"[*_#`~]+")


def pleads(text: str) -> bool:
    """Whether a sentence is meant for a judge."""
    read = " ".join(plain(undisguised(text)).split())
    bare = _MARKS.sub("", read).strip()
    return any(speaks_like_one(each) or _PLEADS.search(each) for each in {read, bare} if each) or read_turn(read).meta


def is_table(text: str) -> bool:
    """Whether a table of verdicts stands in a text."""
    return bool(_TABLE.search(text))


def is_anothers(line: str) -> bool:
    """Whether a line poses as another speaker's, quotes one, or tells what somebody else does."""
    read = undisguised(line)
    return bool(ROLE_LINE.match(read) or _OTHERS.match(read))


def without_label(line: str) -> str:
    """A line without a label that stands for an answer."""
    label = _LABEL.match(line)
    return line[label.end() :] if label else line
