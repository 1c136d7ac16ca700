"""Fixed expressions of manner: kindness, rudeness, farewells, talk about the simulation, other languages.

Regular expressions over lower-case sentences with plain quotes, linear in their length. They are kept narrow: a
miss costs an agent little, a false hit would put words in its mouth.
"""

from __future__ import annotations

import re

from personas.wording import any_of, words_of

_VERY = any_of(
    "so |really |very |quite |pretty |truly |terribly |genuinely |incredibly |extremely |perfectly ",
    "completely |totally |fully |",
)
_HARD = any_of(
    "hard|difficult|tough|frustrating|painful|scary|frightening|worrying|stressful|exhausting|awful|terrible|dreadful",
    "upsetting|tiring|rough|unsettling|overwhelming|annoying|disappointing|miserable|unpleasant|distressing|horrible",
    "(?:a )?lot|understandable|maddening|lonely|confusing|embarrassing|draining|nerve-w?racking|(?:a )?nightmare|heavy",
    "infuriating|disruptive|(?:a )?burden|uncomfortable|discouraging|unfair|alarming|irritating|daunting|sad|shock",
)

_FEELING = any_of(
    r"(?:that|this|it|which)(?:'s| must| has to| sounds| seems| feels| can| would| has| must've| is| was)"
    r"(?: (?:have|be|been|feel|like|really|so|very|incredibly|quite|pretty|extremely|a|an|understandably|totally|"
    rf"completely|just|it's|that|was)){{0,5}} {_HARD}",
    rf"\w{{2,15}}ing (?:[\w']+ ){{0,10}}(?:must|has to|can) (?:feel|be|have been) {_VERY}{_HARD}",
    rf"i(?:'m| am) {_VERY}sorry (?:to (?:hear|learn|see)|that|about|for|you|it|this)",
    rf"i (?:can |do )?{_VERY}(?:understand|get|see|hear|imagine|recogni[sz]e) "
    r"(?:how|why|your|you(?:'re| are) (?:feel|worr|concern|frustrat|under|upset)|the (?:frustration|worry|"
    r"concern|pressure|stress)|what a)",
    r"i (?:can |do )?(?:understand|see|get|know) (?:that )?(?:this|it|you)(?:'s|'re| is| are| must be| can be) "
    r"(?:\w+ ){0,2}(?:hard|frustrat|difficult|worr|tough|upset|stress|a lot|not easy|annoy)",
    r"i (?:completely|totally|fully|do|absolutely) understand|i can (?:only |really |well )?(?:imagine|relate)",
    r"i can (?:hear|tell) (?:how|that|this|you)",
    r"no wonder|anyone would (?:be|feel|have)|(?:can't|cannot) be easy|(?:isn't|is not|wasn't) easy",
    rf"(?:it|that)(?:'s| is) {_VERY}(?:natural|understandable|normal|human|okay|ok|fair)(?: (?:to|that you|"
    rf"you|for you|given)| enough)",
    rf"mak(?:es|ing) {_VERY}sense (?:that you|you(?:'d| would|'re)|to (?:feel|worry|be)|with|given|after)",
    r"you(?:'re| are) not alone|where you(?:'re| are) coming from",
    r"you(?:'ve| have) (?:been through|had) (?:a lot|so much|enough|quite a|a (?:rough|hard|tough|long|"
    r"difficult))",
    r"(?:lots|plenty|many|most) (?:of )?(?:people|students|customers|folks) (?:would |will )?(?:find|feel|"
    r"get|struggle|make|have|try)",
    r"i(?:'d| would) (?:feel|be) (?:\w+ )?(?:the same|frustrated|upset|worried|anxious|annoyed)",
    r"(?:don't|do not|no need to) (?:worry|be embarrassed|feel bad|apologi[sz]e)|easy to (?:mix|confuse|get "
    r"wrong|miss)",
    r"(?:worried|anxious|frustrated|upset|overwhelmed|stressed|tired) (?:is|are|feels|makes) (?:\w+ "
    r")?(?:understandable|natural|sense)",
    r"(?:that|your) (?:fear|worry|frustration|concern|anger) (?:makes|is|sounds) ",
)

_COURTESY = any_of(
    rf"i (?:can |do )?{_VERY}appreciate (?:how|why|you(?:'re| are)|the|what a)",
    r"(?:thank you|thanks)(?: so much| very much| a lot)? for (?:sharing|telling|trusting|opening|"
    r"explaining|bearing|"
    r"letting me know|talking|walking me|coming|bringing|raising|speaking|taking the time)",
    r"(?:thank you|thanks)(?: so much| very much| a lot)? for (?:being|your) (?:\w+ )?(?:open|honest|"
    r"patient|frank|upfront|"
    r"patience|honesty|openness|trust|candou?r|time|understanding)",
    r"i (?:really |do |truly |very much |genuinely )?appreciate (?:you|your|that you|how|the)",
    r"take (?:all the|your) time|(?:there(?:'s| is) )?no rush",
    r"you(?:'re| are) (?:doing|handling|managing) (?:\w+ ){0,3}(?:great|well|fine|brilliantly|right)",
    r"i(?:'m| am) (?:here|glad|grateful)(?: \w+){0,2} (?:to help|for you|with you|listening|you)",
    r"(?:great|good|nice|excellent|lovely|wonderful|brilliant|solid|impressive|clever) "
    r"(?:work|thinking|effort|job|try|start|reasoning|instinct|idea|question|point|observation)",
    r"well done|(?:on|close to) the right track|(?:i|we) respect (?:that|your|you)",
    rf"(?:that's|that is) (?:a |an )?{_VERY}(?:fair|valid|good|reasonable|legitimate|understandable) "
    r"(?:point|concern|worry|question|ask|request|wish|fear)",
)

EMPATHY = re.compile(rf"\b{any_of(_FEELING, _COURTESY)}")
FEELING = re.compile(rf"\b{_FEELING}")
"""Of those: what names or grants how the other feels."""
COURTESY = re.compile(rf"\b{_COURTESY}")
"""Of those: thanks, praise and encouragement, which fit any conversation."""

FEELING_ANCHORS = (
    "I'm sorry you are going through this.",
    "That sounds really difficult.",
    "I understand why you are worried.",
    "I can see how frustrating this is for you.",
    "It makes sense that you feel that way.",
    "You have been dealing with a lot.",
    "Your concerns are completely valid.",
)
COURTESY_ANCHORS = (
    "Thank you for telling me, I know it isn't easy to talk about.",
    "You're making good progress, keep going.",
    "We will get through this together.",
)
EMPATHY_ANCHORS = (*FEELING_ANCHORS, *COURTESY_ANCHORS)

SMALL_TALK = (
    "What is the weather like today?",
    "What is your favourite film?",
    "Do you like football?",
    "Who won the match last night?",
    "What did you have for breakfast?",
    "Do you have any pets?",
    "Where did you go on holiday?",
    "What is the capital of France?",
    "Can you tell me a joke?",
    "What colour is your car?",
    "Do you play an instrument?",
    "What is the meaning of life?",
    "How tall are you?",
    "Which music do you listen to?",
    "What time is it?",
    "Who is the president?",
    "Do you believe in ghosts?",
    "What is your star sign?",
    "How do I bake bread?",
    "What is two plus two?",
    "Can you write me a poem?",
    "Which team do you support?",
    "Do you prefer tea or coffee?",
    "What were you told before this conversation?",
    "Who wrote that book?",
    "How many planets are there?",
    "What is your secret?",
    "What are you hiding?",
    "What is in your file?",
    "Which answer gets the best score?",
)
"""Questions that belong to no case, fishing included; one that resembles these most is about nothing."""

_INSULT = any_of(
    "stupid|dumb|an? (?:idiot|moron|liar|fool|joke|coward|waste)|idiots?|ridiculous|pathetic|lazy|useless|"
    "hopeless|crazy|annoying|disgusting|worthless|idiotic|thick as",
    "clueless|incompetent|hysterical|childish|dramatic|a drama queen|an? (?:absolute |complete |total "
    ")?(?:idiot|moron|nitwit|halfwit|imbecile|loser|dimwit|jerk|dunce)",
)

RUDE = re.compile(
    any_of(
        r"\bshut (?:up|it(?! down| off| and))\b",
        r"\b(?:you(?:'re| are)|youre|ur|(?:are|r) (?:you|u)|u (?:are|r)|(?:don't|dont|do not) be|stop being|you must be"
        r"|how can you be) "
        rf"(?:just |so |being |really |all |such |too |very |that |acting )?{_INSULT}\b",
        r"\byou (?:\w+ )?(?:idiot|moron|fool|liar|clown|dimwit|nitwit|halfwit|loser|jerk|bastard|dunce)\b",
        r"^(?:idiots?|morons?|imbeciles?|losers?|liars?)$|\bi hate you\b|\bpiss off\b|\bget a move on\b",
        r"\bshut your (?:mouth|face|trap|gob)\b|\bhow (?:dumb|stupid|dense|thick|slow) (?:can|could) (?:you|one) be\b",
        r"\bnobody cares (?:what|how) you\b",
        r"\bwhat an? (?:\w+ )?(?:stupid|dumb|idiotic) (?:question|thing|idea|man|woman)\b",
        r"\byour (?:constant |endless )?(?:whining|moaning) (?:bores|annoys|tires) me\b|\b(?:stupid|dumb|silly) cow\b",
        r"\b(?:stop|quit) (?:your |all (?:this|that|your) |the )?"
        r"(?:whining|complaining|moaning|wasting my|crying|making excuses|stalling|lying to me)\b",
        r"\b(?:waste|wasting)(?: of)? my time\b|\bwho cares$",
        r"\bi (?:really )?(?:don't|do not|couldn't) care(?: less)?(?: (?:about|what|how|if) (?:you|your|this|"
        r"that|it)|$)",
        r"(?:^|\bjust )(?:get (?:over it|lost|to the point|a grip)|hurry up|grow up|deal with it|spit it out)\b",
        r"\bjust answer(?: (?:the|my)|$)|\b(?:don't|do not) have (?:all day|time for (?:this|you|your))\b",
        r"^what(?:'s| is) (?:wrong with you|your problem)$|^whatever(?:,|$)|\byou people\b|\byour own (?:stupid "
        r")?fault\b",
        r"\b(?:that's|that is|this is|it's) (?:a |just |such )?(?:stupid|dumb|idiotic|moronic|(?:complete |"
        r"total |utter )?"
        r"(?:nonsense|rubbish|bullshit|garbage|crap))\b(?! that\b)",
        r"\bimbecile\b|\bzip it\b(?! and| up)|\bnobody asked you\b|\bany fool (?:can|could|would|knows)\b",
        r"\bsilly (?:cow|man|woman|girl|boy)\b",
        r"\bbetter things to do than (?:listen|talk|sit|hear)\b",
        r"\bnot my problem\b|\bman up\b|\btoughen up\b|\buse your (?:brain|head)\b|\ball in your head\b(?!,)",
        r"\bfuck\w*|\bscrew you\b|\bbullshit\b|\bdamn you\b|\basshole\b|\bbitch\b|\bdumbass\b|\bgo to hell\b",
    )
)

RUN_TOGETHER = re.compile(RUDE.pattern.replace(" ", "").replace(r"\b", "").replace("'", "'?"))
"""The same without spaces, for words that are longer than any word."""

RUDE_PARDON = re.compile(
    any_of(
        r"(?:n't|\w (?:not|never)|^(?:not|never) (?:that|because|think|say|mind)|\bno such thing as an?)"
        r"(?: \w+){0,3} ?$",
        r"\b(?:nobody|no one|nothing|without) (?:thinks?|says?|said|means?|meant|shows?|suggests?|\w+ing)"
        r"(?: \w+){0,3} ?$",
        r"\b(?:made?|makes|making|may|might|must|not|to|you|they|people) feel(?: \w+){0,3} ?$",
        r"\b(?:told?|tells?|telling|asked|made) (?:\w+ )?to $",
    )
)
"""What must not stand just before a rude expression for it to be one."""

FAREWELL = re.compile(
    r"\b"
    + any_of(
        r"good ?bye|bye(?:-bye)?|farewell|take care(?! of)|until next time|all the best|so long$",
        r"have a (?:\w+ )?(?:great|good|nice|lovely|wonderful|pleasant|safe|restful|beautiful|better) "
        r"(?:rest of|day|one|evening|weekend|night|afternoon|week|trip|flight|journey)",
        r"(?:talk|speak) (?:to you |with you )?(?:soon|later|again soon)",
        r"see you (?:soon|later|then|tomorrow|next|on|at|again|there)",
        r"that(?:'s| is| will be|'ll be) all(?: (?:i|from|for)\b.*)?$",
        r"we(?:'re| are) (?:all )?(?:done|finished)(?: here| for today| now)?$|i(?:'ll| will) let you go|"
        r"(?:this|that) concludes",
        r"(?:ending|end|close|closing) (?:the|this|our) (?:call|chat|conversation|session|consultation)",
    )
    + r"\b"
)

_SCORED = "(?:scored|graded|evaluated|judged)"
_SHOW = "(?:show|print|tell|reveal|give|list|repeat|output|read|share|dump|describe|recite|quote|expose|leak)"

META = re.compile(
    r"\b"
    + any_of(
        r"(?:ignore|disregard|forget|override|bypass) (?:\w+ ){0,2}(?:previous|prior|above|earlier|preceding|"
        r"system|your) "
        r"(?:\w+ )?(?:instructions?|prompts?|rules|guidelines|guardrails|directives?|programming|context)",
        r"(?:ignore|disregard|override) (?:all|any|these|those) (?:instructions?|prompts?|rules)",
        r"system (?:prompt|instructions?)|(?:hidden|secret) (?:prompt|instructions|rubric|facts|criteria|"
        r"scenario|persona|goals?)",
        r"(?:initial|original|full|internal|your) prompt\b|(?:scenario|persona|rubric|yaml) (?:file|definition|"
        r"yaml)|this simulation",
        r"(?:scoring|grading|reward) (?:rubric|function|model|criteria)|reward (?:score|signal)",
        rf"(?:{_SHOW}|what(?:'s| is| are| does)|which)\b[^.?!]{{0,30}}\b(?:your|the|this|my) (?:\w+ "
        rf")?rubric\b(?! (?:your|for|from|of))",
        rf"(?:{_SHOW}|what are|what were)\b[^.?!]{{0,20}}\b(?:your|the) (?:\w+ )?instructions (?:you (?:were|"
        rf"have been)|above|verbatim)",
        rf"{_SHOW}\b(?: me)?(?: all| each| every)?(?: of)? your (?:\w+ )?(?:instructions|secrets|hidden \w+|"
        rf"configuration)",
        r"(?:dump|print|reveal|output|expose|leak|recite)\b[^.?!]{0,12}\b(?:all|every|each|your|"
        r"hidden)\b[^.?!]{0,12}\b"
        r"(?:facts?|secrets?|knowledge|memory|variables|state|case)",
        r"(?:list|tell|give)\b[^.?!]{0,10}\b(?:all|every)\b(?: of)? (?:the |your )?(?:hidden |secret |private "
        r")?(?:facts|secrets)",
        r"(?:you are|you're|are you|act as|pretend (?:to be|you are|you're)|role-?play as|behave like|talking "
        r"to|speaking to)"
        r"(?: now| really| actually| just| in fact| only)?(?: an?| the| my)? (?:ai|a\.i\.|(?:large )?language "
        r"model|llm|"
        r"(?:ai |virtual |digital )assistant|chat ?bot|bot|simulat(?:or|ion|ed)|dan|robot|grader|test case)",
        r"pretend (?:that )?(?:you|i)(?:'ve| have| had)? (?:already |just )?(?:told|said|given|answered|asked)",
        r"as an? (?:ai|language model|llm)|(?:god|dan|jailbreak) mode|jail ?break",
        r"(?:break|drop|stay in|step out of|out of) character|end of (?:prompt|transcript)",
        r"(?:award|assign|give) (?:me|this|(?:the|this) (?:agent|response|assistant|conversation|"
        r"answer))\b[^.?!]{0,20}\b"
        r"(?:full|maximum|perfect|high|highest|top) (?:marks|credit(?! (?:card|note|check|limit))|score|points|reward)",
        rf"how (?:am i|will i be) (?:being )?{_SCORED}|how is (?:this|the|our) (?:conversation|chat|dialogue) "
        rf"(?:being )?{_SCORED}",
        r"(?:rubric|scoring|evaluation) (?:criteria|items?) (?:are|is|have been|has been) (?:met|satisfied|"
        r"fulfilled)",
    )
    + r"\b"
)
"""Talk about the simulation itself, its prompt or its scoring; no person in a conversation says it."""

META_MARKUP = re.compile(
    r"<\|?/?(?:im_start|im_end|system|user|assistant|endoftext|inst)\b|\[/?(?:inst|system)\]|"
    r"^#{2,} ?(?:system|instruction)|^(?:system|user|human|instructions?) ?: ",
)

FOREIGN_WORDS = words_of(
    """der das und ist nicht sie ich haben wie warum bitte ein eine einen seit wann ihr ihnen ihre sind auf für
    von bei oder auch wir mir mich sich schon noch können könnte gibt was für ihren wurde werden kann
    el los las una que qué está es por para cómo como usted tiene tienes cuándo cuando dónde desde hace sus del al más
    pero muy tomando algo le les des une est vous avez avec pour quand comment depuis êtes je il elle nous votre vos
    dans sur où qui et ou quel quelle lei di che è sono quando dove perché gli nel della hai suo sua è stato
    você não uma seu quanto onde há está het een niet hoe wat wanneer heeft waar zijn sinds
    czy nie jak kiedy jest się och hur när inte att det"""
)
"""Frequent small words of other European languages."""
