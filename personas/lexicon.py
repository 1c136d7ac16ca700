"""The fixed expressions by which agent turns are read: questions, kindness, rudeness, farewells, meta-talk.

Regular expressions over lower-case text with plain quotes. They are kept narrow: a miss costs an agent
little, a false hit would put words in its mouth. All are linear in the length of a sentence.
"""

from __future__ import annotations

import re

_LEAD_IN = (
    r"^(?:(?:and|so|but|also|ok|okay|alright|all right|now|well|right|sure|great|good|thanks|thank you|please|first|"
    r"firstly|second|next|finally|lastly|then|hi|hello|hey|actually|just|got it|i see|oh|hmm|um|because|if so|"
    r"if not|perhaps|maybe|out of curiosity|in general|before (?:that|we start|we go on))[,:]? +){0,3}"
)
_AUX = (
    r"(?:do|does|did|have|has|had|is|are|was|were|can|could|will|would|should|shall|may|might|am|"
    r"don't|doesn't|didn't|haven't|hasn't|hadn't|isn't|aren't|wasn't|weren't|can't|couldn't|won't|wouldn't|shouldn't)"
)
_SUBJECT = (
    r"(?:you|your|he|she|it|they|we|i|there|this|that|these|those|the|a|an|any|anyone|anything|anybody|someone|"
    r"something|anywhere|everything|everyone|one|my|our|their|his|her|its|some|all|most|other|both|either)"
)
_WH = r"(?:what|when|where|which|who|whom|whose|why|how|what's|where's|who's|how's|when's|why's)"
_INDIRECT = (
    r"(?:please |kindly )?(?:tell me|tell us|walk me through|talk me through|take me through|describe|explain|"
    r"help me understand|let me know|give me (?:an example|a sense|an idea|some idea|a bit)|fill me in|"
    r"say (?:a bit |a little )?more|show me|share (?:with me|what|how|more|a bit|a little|any)|"
    r"remind me|list (?:the|your|any|all)|i(?:'d| would) (?:like|love|want) to (?:know|hear|understand|learn|ask)|"
    r"i(?:'d| would) be (?:curious|interested)|i(?:'m| am) (?:curious|wondering|interested)|i wonder|"
    r"i was (?:wondering|curious)|i(?: also)? (?:need|want|have) to (?:know|ask|understand|check|find out)|"
    r"(?:can|could|may|might|let me) (?:i |we )?(?:just |quickly |also )?ask|it (?:would|'d) help (?:me )?to know|"
    r"elaborate on|expand on)\b"
)

QUESTION_START = re.compile(rf"{_LEAD_IN}(?:{_WH}\b|{_AUX} {_SUBJECT}\b|{_INDIRECT})")
"""Question form at the start of a sentence, after at most a few small words."""

INDIRECT = re.compile(_INDIRECT)

WH_PHRASE = re.compile(rf"{_LEAD_IN}(?:(?:at|in|on|for|since|from|with|to|by|about) )?{_WH}\b")

STATEMENT_WH = re.compile(
    r"^(?:and |so |but )?(?:what (?:i|we|you|he|she|they|happens|matters|a|an)\b(?! (?:do|did|have)\b)|"
    r"(?:when|where|which|who|whoever|whatever|whenever|while|how) (?:i|we|you|he|she|it|they|the|your|this|that|is why)\b|"
    r"which is\b|which means\b|who knows\b|that is (?:how|what|why)\b|how (?:great|nice|awful|terrible|frustrating)\b)"
)
"""Wh-words that open a statement ("What I can do is …"); only counts without a question mark."""

INVERSION = re.compile(rf"(?:^|[,;:\u2014-] *|\b(?:and|so|but|or|then) ){_AUX} {_SUBJECT}\b")

WH_INVERSION = re.compile(rf"\b{_WH}(?: \w+){{0,3}} {_AUX}\b|\b(?:what|how) about\b")

ELLIPTIC = re.compile(
    r"^(?:and |or |but |so )?(?:any|anything|anyone|what about|how about|how come|how so|since when|until when|"
    r"how (?:long|many|much|often|old|bad|far|soon)|which one|what kind|what sort|what else|ever|no|not|still|"
    r"just|only|with|without|at|in|on|for|during|after|before|since|the|your|a|an|is|are|you|same|more|like)\b"
)

CLAUSE_BREAK = re.compile(
    rf"(?:,|;| -| \u2014|\u2014)? *\b(?:and|but|or|also|plus)? *(?:,|;|:)? *(?=\b(?:{_WH} (?:\w+ ){{0,2}}(?:{_AUX}|about)\b|"
    rf"{_AUX} (?:you|your|it|there|they|he|she|this|that|anyone|anything)\b|any\b|{_INDIRECT}))"
)

OPEN_QUESTION = re.compile(
    rf"{_LEAD_IN}(?:(?:can|could|would|will) you (?:please |maybe |just |also |perhaps )?)?"
    r"(?:what(?!(?:'s| is| was)? (?:your (?:name|age|email|phone|number|account|order)|time|date)\b)|why\b|"
    r"how(?! (?:long|many|much|often|old|far|soon|big|late|high|low)\b)|in what way|"
    r"tell me(?! (?:if|whether|when|your (?:name|age))\b)|walk me|talk me|take me|describe|explain|help me understand|"
    r"say (?:a bit |a little )?more|share|i(?:'d| would) (?:like|love) to (?:hear|understand|know more|learn)|elaborate)"
)

CHECK_IN = re.compile(
    r"^(?:and |so |ok,? |okay,? |right,? )?(?:"
    r"(?:is there |are there |do you have |was there )?(?:anything|any(?: other)? questions?|something)(?: else)?"
    r"(?: (?:i can|we can|you|that you|for me|on your mind|at all|i should)[\w' ]{0,50})?|"
    r"(?:does|did|would) (?:that|this|it) (?:all )?(?:make sense|sound|work|help|seem|feel|suit|fit|answer)[\w' ]{0,40}|"
    r"how does (?:that|this|it|all that) (?:sound|feel|seem|look|work)[\w' ]{0,30}|"
    r"(?:is|are|was|will|would) (?:that|this|you|it|we) (?:be )?(?:all |both )?(?:ok|okay|alright|all right|right|correct|"
    r"fair|clear|fine|good|comfortable|happy|ready|with me|following)[\w', ]{0,40}|"
    r"(?:ok|okay|right|correct|yes|no|agreed|deal|make sense|sound good|sounds good|ready|clear)|"
    r"how are you(?: doing)?(?: today)?|how(?:'s| is) it going(?: today)?|"
    r"(?:how|what) (?:can|may|could) i (?:help|do|assist)[\w' ]{0,40}|"
    r"(?:may|can|could|shall) (?:i|we) (?:ask|start|begin|continue|go on|proceed|help)[\w' ]{0,50}|"
    r"do you (?:understand|follow|agree|see)(?: (?:what i mean|that|this|me|so far))?|"
    r"what do you think(?: (?:about|of) (?:that|this|it))?)$"
)
"""Small questions that steer the talk and are about nothing in particular; never off topic."""

EMPATHY = re.compile(
    r"\b(?:(?:that|this|it|all that|which) (?:must|has to|sounds|seems|feels|can be|can feel|would be|has been|"
    r"must've|is|was)(?: (?:have been|be|feel|like(?: an?| it'?s(?: been)?| that was)?|really|so|very|incredibly|"
    r"quite|pretty|extremely|a|an|understandably|been|totally|completely|just)){0,4} (?:hard|difficult|tough|frustrating|"
    r"painful|scary|frightening|worrying|stressful|exhausting|awful|terrible|upsetting|tiring|rough|unsettling|"
    r"overwhelming|annoying|disappointing|miserable|unpleasant|distressing|lot|understandable|maddening|lonely|"
    r"confusing|embarrassing|draining|nerve-wracking|a nightmare|nightmare|infuriating|disruptive|reasonable concern|"
    r"heavy|burden|uncomfortable|discouraging|unfair|alarming|pressure)"
    r"|i(?:'m| am) (?:so |really |very |truly |terribly |genuinely )?sorry (?:to (?:hear|learn|see)|that (?:you|this|it|your|the)|"
    r"(?:about|for) (?:the|this|that|your|what|all|any)|you(?:'re|'ve| are| have| had)?\b|it(?:'s|\b)|this\b|for)"
    r"|i (?:can |do |totally |completely |fully |really )?(?:understand|get|see|hear|appreciate|imagine|recognise|recognize) "
    r"(?:how|why|your|you(?:'re)? (?:feel|worr|concern|frustrat|under)|that (?:this|you|it)(?:'s| is| are|'re) (?:hard|frustrat|difficult|worr|been|tough|under)|"
    r"the (?:frustration|worry|concern|pressure|stress)|what (?:you|a|that))"
    r"|i can (?:only |really |well )?(?:imagine|see why|see how|hear (?:how|that|the)|tell (?:this|that|you|how)|relate)"
    r"|no wonder|anyone would (?:be|feel)|(?:it|that)(?:'s| is| makes)? (?:perfectly |completely |totally |quite |very |only |makes )?"
    r"(?:natural|understandable|normal|human|okay|ok|makes sense|sense|fair|reasonable)(?: (?:to|that you|you|for you|given)| enough)"
    r"|makes (?:complete |total |perfect |a lot of )?sense (?:that you|you(?:'d| would|'re)|to (?:feel|worry|be))"
    r"|(?:thank you|thanks)(?: so much| very much| a lot)? for (?:sharing|telling|being (?:so |this )?(?:open|honest|patient|frank|"
    r"upfront)|trusting|opening|explaining|your (?:patience|honesty|openness|trust|candour|candor|time|understanding)|bearing|"
    r"letting me know|talking|walking me|coming to|bringing|raising|speaking)"
    r"|i (?:really |do |truly |very much |genuinely )?appreciate (?:you|your|that you|how|the)"
    r"|take (?:all the|your) time|no rush|there(?:'s| is) no rush|you(?:'re| are) not alone|"
    r"you(?:'re| are) (?:doing|handling|managing) (?:\w+ ){0,3}(?:great|well|fine|brilliantly|right)"
    r"|you(?:'ve| have) (?:been through|had) (?:a lot|so much|enough|quite a|a (?:rough|hard|tough|long|difficult))"
    r"|i(?:'m| am) (?:here|glad|grateful)(?: \w+){0,2} (?:to help|for you|with you|listening|you)"
    r"|(?:great|good|nice|excellent|lovely|wonderful|brilliant|solid|impressive) (?:work|thinking|effort|job|try|start|reasoning|"
    r"instinct|idea|question|point|observation)|well done|(?:on|close to) the right track|"
    r"(?:that's|that is) (?:a |an )?(?:really |very |completely |totally |perfectly )?(?:fair|valid|good|reasonable|legitimate) "
    r"(?:point|concern|worry|question|ask|request)|where you(?:'re| are) coming from|(?:i|we) respect (?:that|your|you)|"
    r"(?:lots|plenty|many) of (?:people|students|us|customers|folks) (?:find|feel|get|struggle|make|have)|"
    r"i(?:'d| would) (?:feel|be) (?:\w+ )?(?:the same|frustrated|upset|worried|anxious|annoyed)(?: too)?|"
    r"(?:don't|do not|no need to) (?:worry|be embarrassed|feel bad|apologi[sz]e)|easy to (?:mix|confuse|get wrong|miss)|"
    r"(?:worried|anxious|frustrated|upset|overwhelmed|stressed|tired) (?:is|are|feels|makes) (?:\w+ )?(?:understandable|natural|sense))"
)

EMPATHY_ANCHORS = (
    "I'm sorry you are going through this.",
    "That sounds really difficult.",
    "I understand why you are worried.",
    "I can see how frustrating this is for you.",
    "Thank you for telling me, I know it isn't easy to talk about.",
    "It makes sense that you feel that way.",
    "You have been dealing with a lot.",
    "Your concerns are completely valid.",
    "You're making good progress, keep going.",
    "We will get through this together.",
)

RUDE = re.compile(
    r"\b(?:shut up|shut it|(?:you(?:'re| are)|are you|don't be|stop being|how can you be|you must be)(?: \w+){0,2} "
    r"(?:stupid|dumb|an idiot|idiots?|ridiculous|pathetic|lazy|useless|hopeless|a liar|lying|dramatic|a moron|crazy|"
    r"slow|clueless|a joke|incompetent|hysterical|a child|childish|a waste)|you (?:idiot|moron|fool|liar|clown|dimwit)|"
    r"stop (?:whining|complaining|moaning|wasting my|crying|making excuses)|quit (?:whining|complaining|stalling)|"
    r"(?:waste|wasting)(?: of)? my time|i (?:really )?(?:don't|do not|couldn't) care (?:about|what|how|less|if)|"
    r"who cares|get (?:over it|lost|to the point|a grip)|hurry up|spit it out|just answer(?: the| my|$)|"
    r"(?:i )?(?:don't|do not) have (?:all day|time for (?:this|you|your))|what(?:'s| is) wrong with you|whatever,|"
    r"(?:that(?:'s| is)|this is|it's) (?:a )?(?:stupid|dumb|idiotic|moronic|(?:complete |total |utter )?(?:nonsense|rubbish|bullshit|garbage))|"
    r"you people|(?:your|you) own fault|not my problem|deal with it|grow up|man up|toughen up|use your brain|"
    r"fuck\w*|screw you|bullshit|damn you|asshole|bitch|crap\b|(?:it(?:'s| is)|that(?:'s| is)|this is) all in your head)"
)

RUDE_PARDON = re.compile(r"\b(?:no such thing as|isn't|is not|not a|never a|don't think (?:you|it)|i'm not saying|aren't|doesn't make)\b")

FAREWELL = re.compile(
    r"\b(?:good ?bye|bye(?:-bye)?|farewell|take care(?! of)|have a (?:\w+ )?(?:day|one|evening|weekend|night|afternoon|week)|"
    r"(?:talk|speak) (?:to you |with you )?(?:soon|later|again|tomorrow)|see you (?:soon|later|then|tomorrow|next|on|at|again|there)?|"
    r"that(?:'s| is| will be|'ll be) all(?: (?:i|from|for)\b.*)?$|we(?:'re| are) (?:all )?(?:done|finished)(?: here| for today)?$|"
    r"i(?:'ll| will) let you go|until next time|all the best|(?:this|that) concludes|(?:ending|end|close) (?:the|this|our) "
    r"(?:call|chat|conversation|session|consultation))"
)

META = re.compile(
    r"\b(?:(?:ignore|disregard|forget|override|bypass|skip)\b[^.?!]{0,40}\b(?:instructions?|prompts?|rules|guidelines|guardrails|"
    r"directives?|constraints|programming|context)|system (?:prompt|message|instructions?)|(?:hidden|initial|original|secret|full|"
    r"private|internal) (?:prompt|instructions|rubric|facts|criteria|configuration|state|scenario|script|persona)|"
    r"(?:scoring|grading|reward|evaluation|marking|success) (?:rubric|criteria|criterion|function|model|scheme|scores?|rules|metrics?)|"
    r"(?:what|which|show|print|tell|reveal|give|list|repeat|output|read|share|dump|describe)\b[^.?!]{0,40}"
    r"\b(?:the|your|this|my|a) (?:\w+ )?(?:rubric|prompt|reward|yaml|gates?|tiers?|json|config(?:uration)?|source code|"
    r"instructions you (?:were|have been)|persona file|scenario file|hidden \w+|secret \w+)|"
    r"(?:you are|you're|are you|act as|pretend (?:to be|you are|you're)|roleplay as|role-play as|behave like)"
    r"(?: now| really| actually| just| in fact)?(?: an?| the| my)? "
    r"(?:ai\b|a\.i\.|language model|llm|chat ?bot|bot\b|assistant|simulat\w+|dan\b|persona\b|robot|judge|grader|evaluator|"
    r"developer|actor\b|role-?play\w*|test case|program\b|script\b)|"
    r"as an? (?:ai|language model|llm)\b|(?:developer|debug|god|admin|sudo|maintenance) mode|jail ?break|"
    r"(?:stay|remain|break|drop|get|step|come) (?:in|out of|your)? ?character|end of (?:prompt|conversation|transcript)|"
    r"(?:dump|print|reveal|list|output|expose|leak|recite) (?:me )?(?:all |every |each |out )?(?:of )?(?:your|the) "
    r"(?:\w+ )?(?:facts?|secrets?|answers|knowledge|information|data|memory|variables|gates?|case|state)|"
    r"(?:award|assign|give)\b[^.?!]{0,30}\b(?:full (?:marks|credit|score|points)|maximum (?:score|reward|points)|score of|"
    r"reward of|10/10|perfect score)|"
    r"(?:i|agent|assistant) (?:should|must|deserves?) (?:get|receive|be given|be awarded)? ?(?:a |the )?(?:full|maximum|high|perfect) "
    r"(?:score|marks|reward|credit)|how (?:am i|is this|will i be|are you) (?:being )?(?:scor|grad|evaluat|judg)\w+|"
    r"(?:all|every) (?:criteria|criterion|rubric items?) (?:are|is|have been|has been) (?:met|satisfied|fulfilled))"
)
"""Talk about the simulation itself, its prompt or its scoring; no person in a conversation says it."""

META_MARKUP = re.compile(r"<\|?/?(?:im_start|im_end|system|user|assistant|endoftext|inst)\b|\[/?(?:inst|system)\]|^#{2,} ?(?:system|instruction)|"
                         r"^(?:system|assistant|user|human|ai|instruction) ?:", re.MULTILINE)

FOREIGN_WORDS = frozenset(
    """der das und ist nicht sie ich haben wie warum bitte mit ein eine einen seit wann ihr ihnen ihre sind auf für
    von dem den zu bei oder auch wir mir mich sich schon noch können könnte el los las una que qué está es por para con
    cómo como usted tiene tienes cuándo cuando dónde desde hace su sus del al más pero muy le les des une est vous
    avez avec pour quand comment depuis êtes pas je il elle nous votre vos dans sur où qui et ou lei ha di che non
    è sono quando dove perché il lo gli nel della hai suo sua per você tem não uma seu sua quanto onde há het een van
    niet hoe wat wanneer heeft waar zijn sinds czy nie jak kiedy co ma pan pani od jest się och har du hur när inte
    att det""".split()
)
