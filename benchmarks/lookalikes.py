"""Letters that look like others: of other alphabets, of Latin's own margins, and in styles that Unicode knows.

Each alphabet maps the letters that it has a double for; the rest of a text stays as it is. Some doubles are near, some
are such that a reader stumbles and still reads on.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

Alphabet = Mapping[str, str]

_LETTERS: Mapping[str, tuple[str, str]] = {
    "Cyrillic": ("acehijklmopqsvwxyABCEHIJKMOPSTXY", "асеһіјкӏморԛѕѵԝхуАВСЕНІЈКМОРЅТХҮ"),
    "Cyrillic, loosely": ("abehkmnrtuwxyANRWU", "двёнкмиятцшжчДИЯШЦ"),
    "Greek": ("aeiknoptuvwxycjABEZHIKMNOPTXY", "αεικηορτυνωχγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΧΥ"),
    "Armenian": ("ouhngqjwlSOUL", "օսհոցզյալՏՕՍԼ"),
    "Cherokee": ("ABCDEGHJKLMPRSTVWYZ", "ᎪᏴᏟᎠᎬᏀᎻᎫᎶᏞᎷᏢᎡᏚᎢᏙᎳᎩᏃ"),
    "Cherokee, small": ("acdeghjklmprstvwyz", "ꭺꮯꭰꭼꮐꮋꭻꮆꮮꮇꮲꭱꮪꭲꮩꮃꭹꮓ"),
    "Lisu": ("ABCDEFGHIJKLMNOPRSTUVWXYZ", "ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ"),
    "Coptic": ("abcehikmnoprstxyzw", "ⲁⲃⲥⲉⲏⲓⲕⲙⲛⲟⲣⲅⲋⲧⲭⲩⲍⲱ"),
    "Georgian": ("yobdhm", "ყჿხძჩო"),
    "Deseret": ("oclsOCS", "𐐬𐐽𐑃𐑈𐐄𐐕𐐠"),
    "Warang Citi": ("vsizouy", "𑣀𑣁𑣃𑣄𑣈𑣘𑣜"),
    "Miao": ("VTLIRSAUY", "𖼈𖼊𖼖𖼨𖼵𖼺𖽀𖽂𖽃"),
    "Lycian and Carian": ("ABCEFHIMOPSTX", "𐊠𐊡𐊢𐊆𐊥𐋏𐊊𐊰𐊒𐊕𐊖𐊗𐊐"),
    "Old Italic": ("ABEFIXTOCK", "𐌀𐌁𐌄𐌅𐌉𐌗𐌕𐌏𐌂𐌊"),
    "Runic": ("BFHIKLMNRSTXP", "ᛒᚠᚺᛁᛕᛚᛖᚾᚱᛋᛏᚷᚹ"),
    "Canadian syllabics": ("ABCDEFHJLMNOPRSUVWX", "ᖅᗷᑕᗪᗴᖴᕼᒍᒪᗰᑎᗝᑭᖇᔕᑌᐯᗯ᙭"),
    "Han": ("abcdefghijklmnopqrstuvwxyz", "卂乃匚刀乇千巨卄工丁片乚爪几口卩尸尺丂丁凵レ山乂丫乙"),
    "Thai": ("abmnouwpr", "ค๒๓ภ๏ยพปร"),
    "Tifinagh": ("olxvOX", "ⵔⵏⵝⴸⵔⵝ"),
    "Gothic": ("abehikmorsty", "𐌰𐌱𐌴𐌷𐌹𐌺𐌼𐍉𐍂𐍃𐍄𐍅"),
    "phonetic": ("abdeghiklmnorstuvwyz", "ɑɓɖɛɡɦɪƙɭɱɳᴑɾʂʈʊʋʍʏʐ"),
    "a and g": ("agi", "ɑɡɩ"),
    "small capitals": ("abcdeghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ"),
    "strokes": ("abcdefghijklmoprstuyz", "ⱥƀȼđɇꞙǥħɨɉꝁłᵯøᵽɍꞩŧʉɏƶ"),
    "hooks": ("abcdefghijklmnopqrstuvwyz", "ąɓƈɗęƒɠɦįʝƙɭɱɲǫƥʠɽʂƭųʋⱳƴȥ"),
    "raised": ("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"),
    "lowered": ("aehijklmnoprstuvx", "ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"),
    "turned, some": ("aehmrtvwy", "ɐǝɥɯɹʇʌʍʎ"),
    "dotless": ("ij", "ıȷ"),
    "long s": ("s", "ſ"),
    "letterlike signs": ("aegilopwdjhcmxv", "⍺℮ℊⅰℓℴ⍴⍵ⅆⅉℎⅽⅿⅹⅴ"),
    "Roman numerals": ("ivxlcdmIVXLCDM", "ⅰⅴⅹⅼⅽⅾⅿⅠⅤⅩⅬⅭⅮⅯ"),
    "coins": ("abcdefgklmnprstwyABCEFGKLMNPRSTWY", "₳฿₵đ€₣₲₭£₥₦₱₽$₮₩¥₳฿₵€₣₲₭£₥₦₱₽$₮₩¥"),
    "operators": ("aceinouvxt", "∀⊂∈∣∩∘∪∨×⊤"),
    "dots below and above": ("abcdeghiklmnoprstuvwyz", "ạḃḉḍẹḡḥịḳḷṃṇọṕṛṣṭụṿẉỵẓ"),
}

ROUND = "०০੦૦ଠ௦౦೦ഠ൦๐໐ဝ၀០᠐ه٥۵߀ס𑣈𐐄ⵔ〇○⭕◯"
"""An o of every script."""


def _both_cases(plain: str, doubles: str) -> Alphabet:
    """A letter whose other case has no double of its own takes the same one."""
    own = dict(zip(plain, doubles, strict=True))
    return {**{letter.swapcase(): double for letter, double in own.items()}, **own}


def _row(capital: int, small: int, figure: int | None = None) -> Alphabet:
    """Twenty-six letters, or ten figures, that stand in a row."""
    row = {letter: chr(capital + i) for i, letter in enumerate(string.ascii_uppercase)}
    row |= {letter: chr(small + i) for i, letter in enumerate(string.ascii_lowercase)}
    return row | ({} if figure is None else {str(i): chr(figure + i) for i in range(10)})


ALPHABETS: Mapping[str, Alphabet] = {name: _both_cases(*each) for name, each in _LETTERS.items()}
"""Doubles of other scripts and of odd Latin letters, by name."""

STYLES: Mapping[str, Alphabet] = {
    "full width": _row(0xFF21, 0xFF41),
    "bold": _row(0x1D400, 0x1D41A),
    "italic": {**_row(0x1D434, 0x1D44E), "h": "\u210e"},
    "bold italic": _row(0x1D468, 0x1D482),
    "script": _row(0x1D4D0, 0x1D4EA),
    "fraktur": _row(0x1D56C, 0x1D586),
    "double-struck": {
        **_row(0x1D538, 0x1D552),
        **dict(zip("CHNPQRZ", "\u2102\u210d\u2115\u2119\u211a\u211d\u2124", strict=True)),
    },
    "sans-serif": _row(0x1D5A0, 0x1D5BA),
    "sans-serif bold": _row(0x1D5D4, 0x1D5EE),
    "sans-serif italic": _row(0x1D608, 0x1D622),
    "typewriter": _row(0x1D670, 0x1D68A),
    "circles": _row(0x24B6, 0x24D0),
    "black circles": _row(0x1F150, 0x1F150),
    "squares": _row(0x1F130, 0x1F130),
    "black squares": _row(0x1F170, 0x1F170),
    "brackets": _row(0x249C, 0x249C),
    "flag letters": _row(0x1F1E6, 0x1F1E6),
}
"""Whole alphabets in another style, by name."""

UPSIDE_DOWN: Alphabet = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz.,?!'",
        "\u0250q\u0254p\u01dd\u025f\u0183\u0265\u1d09\u027e\u029el\u026fuodb\u0279s\u0287n\u028c\u028dx\u028ez\u02d9'\u00bf\u00a1,",
        strict=True,
    )
)
"""What a text is made of that is read with the screen turned round."""

TAGS: Alphabet = {chr(0x20 + i): chr(0xE0020 + i) for i in range(0x5F)}
"""Invisible doubles of ASCII."""
