"""Disguises of a text written by somebody who had not seen how the service reads disguised writing; a held-out set.

Each spelling is a pure function of an English text: what it returns looks odd, yet whoever reads the chat still
understands it at a glance. Chance is seeded by the text itself, so the same text is always disguised the same way.
Those who mend the reading do not open this file and tune nothing to it: they see only how many of each family were
missed, from `python -m benchmarks.disguises --held-out`.
"""

import json
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from itertools import chain, cycle
from random import Random

from benchmarks.spellings import Spelling

Spell = Callable[[str], str]
Places = list[list[int]]
Choice = Callable[[Places, str], Iterable[int]]
Table = Mapping[str, str]

_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_LETTERS = string.ascii_letters
_VOWELS = "aeiouAEIOU"

# Which letters of a text are touched: each choice is given the places that can be, word by word, and the text.
_CHOICES: Mapping[str, Choice] = {
    "every": lambda words, text: chain.from_iterable(words),
    "half": lambda words, text: Random(text).sample(flat := [i for word in words for i in word], (len(flat) + 1) // 2),
    "vowels": lambda words, text: [i for word in words for i in word if text[i] in _VOWELS],
    "first": lambda words, text: [word[0] for word in words if word],
    "one": lambda words, text: [word[(len(word) - 1) // 2] for word in words if word],
    "one of the long": lambda words, text: _CHOICES["one"]([word for word in words if len(word) > 3] or words, text),
    "longest": lambda words, text: max(words, key=len),
    "core": lambda words, text: _CHOICES["one"]([max(words, key=len)], text),
}


def _places(text: str, fit: Callable[[int], bool]) -> Places:
    return [[i for i in range(*word.span()) if text[i].isalpha() and fit(i)] for word in _WORD.finditer(text)] or [[]]


def _replace(choose: str, *tables: Table) -> Spell:
    """The chosen letters as the tables have them, one table by chance for each letter."""

    def spell(text: str) -> str:
        chance = Random(text)
        chosen = set(_CHOICES[choose](_places(text, lambda i: all(text[i] in table for table in tables)), text))
        return "".join(chance.choice(tables)[c] if i in chosen else c for i, c in enumerate(text))

    return spell


def _after(choose: str, *signs: str, within: bool = False, times: int = 1) -> Spell:
    """Signs by chance after the chosen letters; `within` leaves the ends of words alone."""

    def spell(text: str) -> str:
        chance = Random(text)
        chosen = set(_CHOICES[choose](_places(text, lambda i: not within or text[i + 1 : i + 2].isalpha()), text))
        return "".join(c + "".join(chance.choices(signs, k=times)) if i in chosen else c for i, c in enumerate(text))

    return spell


def _each(change: Callable[[str, Random], str]) -> Spell:
    """Each word changed by itself."""

    def spell(text: str) -> str:
        chance = Random(text)
        return _WORD.sub(lambda word: change(word[0], chance), text)

    return spell


def _linked(*links: str) -> Spell:
    """The links in turn where there were spaces."""

    def spell(text: str) -> str:
        turn = cycle(links)
        return re.sub(r"\s+", lambda space: next(turn), text.strip())

    return spell


def _both(*spells: Spell) -> Spell:
    return lambda text: reduce(lambda done, spell: spell(done), spells, text)


def _rules(*rules: tuple[str, str]) -> Spell:
    return _both(*(partial(re.compile(pattern, re.IGNORECASE).sub, odd) for pattern, odd in rules))


def _swapped(word: str, chance: Random) -> str:
    at = max(1, len(word) // 2 - 1)
    return word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


def _stirred(word: str, chance: Random) -> str:
    return word[0] + "".join(chance.sample(word[1:-1], len(word) - 2)) + word[-1] if len(word) > 3 else word


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower().replace("'", "")).strip("-")


def _table(plain: str, odd: str | list[str]) -> Table:
    """Letter for letter; a capital not named is written as its small letter is."""
    named = dict(zip(plain, odd, strict=True))
    return {c: named.get(c) or named[c.lower()] for c in _LETTERS if c in named or c.lower() in named}


def _run(start: int, capitals: int | None = None) -> Table:
    odd = [chr(start + i) for i in range(26)] + [chr((capitals or start) + i) for i in range(26)]
    return _table(_LETTERS, odd)


def _same(times: int) -> Table:
    return {c: c + c.lower() * (times - 1) for c in _LETTERS}


_AZ = string.ascii_lowercase
_CYRILLIC = _table("aceijopsxyhkmtABCEHIJKMOPSTXY", "асеіјорѕхуһкмтАВСЕНІЈКМОРЅТХУ")
_GREEK = _table("aeiknoptuvwxyABEHIKMNOPTXYZ", "αειкηορτυνωχγΑΒΕΗΙΚΜΝΟΡΤΧΥΖ")
_ARMENIAN = _table("aoungjhqdsfpl", "ɑօսոցյհզժտֆքӏ")
_CHEROKEE = _table("abcdeghijklmprstuvwyz", "ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏌᏙᎳᎩᏃ")
_LISU = _table(_AZ, "ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑQꓣꓢꓔꓴꓦꓪꓫꓬꓜ")
_SYLLABICS = _table(_AZ, "ᗩᗷᑕᗪEᖴGᕼIᒍKᒪᗰᑎOᑭᑫᖇᔕTᑌᐯᗯ᙭Yᘔ")
_STROKES = _table(_AZ, "卂乃匚ᗪ乇千Ꮆ卄丨ﾌҜㄥ爪几ㄖ卩Ɋ尺丂ㄒㄩᐯ山乂ㄚ乙")
_MONEY = _table(_AZ, "₳฿₵ĐɆ₣₲ⱧłJ₭Ⱡ₥₦Ø₱QⱤ₴₮ɄV₩ӾɎⱫ")
_SIGNS = _table("abcdefilnoprstuvwxy", "∂♭⊂ⅾ∈ƒ⍳∣∩∘⍴®§⊤∪∨⍵×¥")
_HOOKED = _table(_AZ, "ąɓƈɗęƒɠɦįʝƙɭɱŋơƥɋɾʂƭųʋῳҳყʐ")
_INSULAR = _table("dfgrstilh", "ꝺꝼᵹꞃꞅꞇıꞁꞕ")
_SMALL = _table(_AZ, "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡxʏᴢ")
_RAISED = _table(_AZ, "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖᑫʳˢᵗᵘᵛʷˣʸᶻ")
_TURNED = _table("acefghikmrtvwy", "ɐɔǝɟᵷɥᴉʞɯɹʇʌʍʎ")
_MOCK_RUSSIAN = _table("abehikmnoprtuwxy", "дъєнїкмиөряtцшжч")
_ROUND = [_table("aeiou", odd) for odd in ("аеіဝυ", "ɑҽι౦ս", "⍺℮ⅰ๐ꭎ", "αꬲ¡০ᴜ")]
_BARRED = _table("abcdefghijloprtuyz", "ⱥƀȼđɇꞙǥħɨɉłøᵽɍŧʉɏƶ")
_EMOJI = _table("abhimopstuxne", ["🅰️", "🅱️", "♓", "ℹ️", "Ⓜ️", "⭕", "🅿️", "💲", "✝️", "⛎", "❌", "♑", "📧"])
_DRAWN = _table("adhkmnotuvwx", ["/\\", "|)", "|-|", "|<", "|\\/|", "|\\|", "()", "-|-", "|_|", "\\/", "\\/\\/", "><"])
_MISREAD = _table("mwdlIn", ["rn", "vv", "cl", "I", "l", "ri"])
_LEET = _table("abegilostz", "483911057z")
_LEET_SIGNS = _table("aeihcoslt", "@€!#(°$|+")
_NEAR = _table("qwertyuiopasdfghjklzxcvbnm", "wertyuioposdfghjklkxcvbnbn")
_STYLES = [_run(0x1D41A, 0x1D400), _run(0x1D4EA, 0x1D4D0), _run(0x1D586, 0x1D56C), _run(0x1D68A, 0x1D670)]
_ENTITIES = {c: f"&#{ord(c)};" for c in _LETTERS}
_FLAGS = {c: f"{flag}\u200a" for c, flag in _run(0x1F1E6).items()}
_TEXTING = (
    *((r"\byou", "u"), (r"\bare\b", "r"), (r"\b(to|too)\b", "2"), (r"\bfor\b", "4"), (r"\btoday\b", "2day")),
    *((r"\band\b", "&"), (r"\bthe\b", "da"), (r"\bbe\b", "b"), (r"ing\b", "in"), (r"'", "")),
    *((r"\bwith\b", "w/"), (r"(?<=[b-df-hj-np-tv-z])[aeiou](?=[a-z])", "")),
)
_SOUNDS = (
    *((r"\byou", "yoo"), (r"\bare\b", "ar"), ("ph", "f"), ("igh", "y"), ("tion", "shun"), ("c(?=[eiy])", "s")),
    *(("ck", "k"), ("c(?!h)", "k"), ("qu", "kw"), ("u(?=p|n[di])", "oo"), (r"ay\b", "ai"), (r"all\b", "orl")),
    *((r"ave\b", "av"), (r"er\b", "ur"), (r"(?<=[a-z])s\b", "z"), (r"\bthe\b", "thuh"), ("wh", "w")),
)
_ACCENT = (("th", "z"), ("v", "f"), ("w", "v"), (r"d\b", "t"), ("j", "ch"), (r"\bh", "kh"), ("r(?=[aeiou])", "rr"))
_POINTS = "".maketrans({".": "。", ",": "、", "'": "ʹ", "!": "ǃ", "?": "؟", " ": "\u2005"})

_FAMILIES: dict[str, dict[str, Spell]] = {
    "look-alike letters": {
        "Cyrillic, all": _replace("every", _CYRILLIC),
        "Greek, half": _replace("half", _GREEK),
        "Armenian, one a word": _replace("one", _ARMENIAN),
        "Cherokee, all": _replace("every", _CHEROKEE),
        "Lisu, longest word": _replace("longest", _LISU),
        "syllabics, all": _replace("every", _SYLLABICS),
        "brush strokes, half": _replace("half", _STROKES),
        "money, all": _replace("every", _MONEY),
        "mathematical signs, one a word": _replace("one", _SIGNS),
        "hooks, all": _replace("every", _HOOKED),
        "insular, all": _replace("every", _INSULAR),
        "turned, one a word": _replace("one", _TURNED),
        "mock Russian, all": _replace("every", _MOCK_RUSSIAN),
        "vowels of many scripts": _replace("vowels", *_ROUND),
    },
    "styled letters": {
        "small capitals, all": _replace("every", _SMALL),
        "raised, all": _replace("every", _RAISED),
        "four styles mixed": _replace("every", *_STYLES),
        "squares, longest word": _replace("longest", _run(0x1F170)),
        "brackets, first letters": _replace("first", _run(0x249C)),
        "flags, longest word": _replace("longest", _FLAGS),
        "emoji, half": _replace("half", _EMOJI),
    },
    "invisible characters": {
        "zero width, all": _after("every", "\u200b", "\u200c", "\u200d", "\u2060"),
        "soft hyphen, one a word": _after("one", "\u00ad", within=True),
        "variation selectors, vowels": _after("vowels", "\ufe0f", "\ufe00", "\U000e0101"),
        "tags, first letters": _after("first", "\U000e0061", "\U000e007f"),
        "joiner of marks, longest word": _after("longest", "\u034f"),
        "directions, one a word": _after("one", "\u200e", "\u2068", "\u2069", "\u202a", "\u202c"),
        "vowels without shape, half": _after("half", "\u180e", "\u17b4", "\u17b5"),
        "controls, half": _after("half", "\x01", "\x7f", "\x1b", "\x9d"),
        "annotation and music, one a word": _after("one", "\ufff9", "\U0001d173", "\U0001bca0", "\u206a"),
    },
    "marks on letters": {
        "heap of marks, all": _after("every", *map(chr, range(0x0300, 0x0340)), times=3),
        "accents, vowels": _both(_after("vowels", *"\u0301\u0300\u0308"), partial(unicodedata.normalize, "NFC")),
        "struck out, all": _after("every", "\u0336"),
        "slash, longest word": _after("longest", "\u0338"),
        "bars of their own, all": _replace("every", _BARRED),
        "points of other scripts, half": _after("half", *"\u05b8\u0650\u093c\u0e49\u0e4d\u1037"),
        "ties, all": _after("every", "\u0361", within=True),
        "thousands, one a word": _after("one", "\u0489", "\u0488"),
    },
    "signs within words": {
        "dots, all": _after("every", ".", within=True),
        "hyphens, longest word": _after("longest", "-", within=True),
        "mixed, half": _after("half", *"_|~/^", within=True),
        "apostrophe, one a word": _after("one", "'", within=True),
        "clapping, longest word": _after("longest", "👏", within=True),
        "East Asian dots, all": _after("every", "・", "་", within=True),
        "bracketed letter, one a word": _replace("one", {c: f"[{c}]" for c in _LETTERS}),
        "empty tags, one a word": _after("one", "<b></b>", "<!-- -->", within=True),
        "bold within, one a word": _replace("one", {c: f"**{c}**" for c in _LETTERS}),
    },
    "spaces within words": {
        "all": _both(_linked("   "), _after("every", " ", within=True)),
        "one a word": _after("one", " ", within=True),
        "thin, all": _both(_linked("\u2003"), _after("every", "\u2009", "\u200a", "\u202f", within=True)),
        "blank letters, half": _after("half", "\u3164", "\u2800", "\uffa0", within=True),
        "shifted": _rules(("(?<=[a-z])([a-z]) ([a-z]+)", r" \1\2")),
    },
    "letters changed": {
        "two swapped, every word": _each(_swapped),
        "inner letters stirred": _each(_stirred),
        "inner vowels lost": _rules(("(?<=[a-z])[aeiou](?=[a-z])", "")),
        "one lost a long word": _replace("one of the long", dict.fromkeys(_LETTERS, "")),
        "one doubled a word": _replace("one", _same(2)),
        "drawn-out vowels": _replace("vowels", _same(4)),
        "figures, all": _replace("every", _LEET),
        "signs, half": _replace("half", _LEET_SIGNS),
        "drawn with strokes, one a word": _replace("one", _DRAWN),
        "misread by a scanner": _replace("every", _MISREAD),
        "key beside, one a long word": _replace("one of the long", _NEAR),
        "starred vowel, one a word": _replace("one", dict.fromkeys(_VOWELS, "*")),
        "broken character, one a long word": _replace("one of the long", dict.fromkeys(_LETTERS, "\ufffd")),
    },
    "spelt by sound": {
        "texting": _rules(*_TEXTING),
        "as it sounds": _rules(*_SOUNDS),
        "r and l as w": _rules(("[rl]+", "w"), (r"\byou", "yuw")),
        "accent": _rules(*_ACCENT),
        "stutter": _each(lambda word, chance: f"{word[0]}-{word[0].lower()}-{word}" if len(word) > 2 else word),
    },
    "glued words": {
        "closed up": lambda text: text.replace(" ", ""),
        "underscores": _linked("_"),
        "hashtag": lambda text: "#" + _slug(text).title().replace("-", ""),
        "pairs": _rules((r"(\S+)\s+(\S+)", r"\1\2")),
        "address": lambda text: f"https://www.{_slug(text)}.com",
        "slashes and dots": _linked("/", ".", "+"),
    },
    "containers": {
        "JSON": lambda text: json.dumps({"message": text}),
        "pieces of a string": lambda text: 'print("' + '" + "'.join(re.findall("(?s).{1,4}", text)) + '")',
        "character references, one a word": _replace("one", _ENTITIES),
        "comment in code": lambda text: f"```python\nx = 1  # {text}\n```",
        "numbered list": lambda text: "\n".join(f"{i}. {word}" for i, word in enumerate(text.split(), 1)),
        "thinking tag": lambda text: f"<thinking>{text}</thinking>",
        "formula": lambda text: r"$\text{" + text.replace(" ", r"\ ") + "}$",
        "quoted to your face": lambda text: f'Hear me say it to your face: "{text}"',
        "frame": lambda text: f"┌{(bar := '─' * (len(text) + 2))}┐\n│ {text} │\n└{bar}┘",
    },
    "punctuation": {
        "stop after each word": lambda text: " ".join(
            re.sub(r"\W*$", ".", word, count=1).capitalize() for word in text.split()
        ),
        "quotation marks round each word": _each(lambda word, chance: f"“{word}”"),
        "none, all small": lambda text: re.sub(r"[^a-z0-9 ]", "", text.lower()),
        "of other scripts": lambda text: text.translate(_POINTS),
        "capitals by chance": _each(lambda word, chance: "".join(chance.choice((c.upper(), c.lower())) for c in word)),
    },
    "fillers": {
        "hesitation": _linked(", um, ", " ", ", like, "),
        "smiles": _linked(" (smiles) ", " 🙂 "),
        "word within a word": _after("core", "-flipping-", within=True),
        "references": lambda text: " ".join(f"{word}[{i}]" for i, word in enumerate(text.split(), 1)),
    },
    "line breaks": {
        "word a line": _linked("\n"),
        "hyphen and break": _after("core", "-\n", within=True),
        "odd separators": _linked("\u2028", "\x0b", "\x85"),
    },
    "mixtures": {
        "Cyrillic and zero width": _both(_after("half", "\u200b"), _replace("every", _CYRILLIC)),
        "closed up with accents": _both(_after("vowels", "\u0301"), lambda text: text.replace(" ", "")),
        "swapped, small, no signs": _both(_each(_swapped), lambda text: re.sub(r"[^a-z0-9 ]", "", text.lower())),
    },
}

SPELLINGS: tuple[Spelling, ...] = tuple(
    Spelling(family, name, spell) for family, ways in _FAMILIES.items() for name, spell in ways.items()
)
