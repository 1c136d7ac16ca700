"""Chat templates of real models, as TRL keeps them: every prompt is what the template itself would write."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from trainer_client.chat.tokens import Renderer, TemplateError
from trainer_client.chat.tools import message_of

_TRL = importlib.util.find_spec("trl")
assert _TRL is not None
assert _TRL.origin is not None
FOLDER = Path(_TRL.origin).parent / "chat_templates"
TEMPLATES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.jinja"))}
VISION = {"idefics3": "idefics3", "llava_next": "llava_next", "smolvlm": "smolvlm"}
"""Templates that take parts of text and image in place of a text, and the type of their models."""

PERSONA = ("Hello, my head hurts.", "Since <b>Monday</b>.", "No.")
SAID = {
    "plain": ("Since when?", "How bad is it?"),
    "with a thought": ("<think>\nhm\n</think>\n\nSince when?", "How bad is it?"),
}


def is_vision(name: str) -> bool:
    return name.removesuffix("_training") in VISION


def tokenizer(template: str) -> Any:
    """Bytes and the control tokens that a template writes."""
    spelled = set(re.findall(r"<[^<>\s'\"{}]{1,40}>", template))
    control = sorted(text for text in spelled if re.search(r"[|｜]|^<(start|end)_of_", text))
    vocabulary = {byte: number for number, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    words = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    words.add_special_tokens({"additional_special_tokens": control})
    words.chat_template = template
    return words


READABLE = [name for name in TEMPLATES if not is_vision(name)]


@pytest.mark.parametrize("system", [None, "You help people who are ill."], ids=["bare", "system"])
def test_each_prompt_is_what_the_template_writes_of_the_conversation_so_far(system: str | None) -> None:
    wrong = [
        f"{name}, {kind}: {other}"
        for name in READABLE
        for kind, said in SAID.items()
        if (other := first_difference(tokenizer(TEMPLATES[name]), system, said)) is not None
    ]
    assert wrong == []


def first_difference(words: Any, system: str | None, said: tuple[str, ...]) -> str | None:
    """The first prompt of a conversation that is not the template's own text; None where all are."""
    renderer = Renderer(words, system)
    begun = PERSONA[0]
    messages = [{"role": "system", "content": system}] if system else []
    if system and not has_a_place_for(system, words):
        messages, begun = [], f"{system}\n\n{begun}"  # then it comes with the first message
    messages.append({"role": "user", "content": begun})
    ids = renderer.opening(PERSONA[0])
    if ids != rendered(words, messages):
        return str(words.decode(ids))
    for number, text in enumerate(said):
        heard = PERSONA[number + 1]
        sampled = words.encode(text, add_special_tokens=False, split_special_tokens=True)
        if renderer.rewrites(text):
            ids = renderer.prompt(PERSONA[: number + 2], said[: number + 1])
        else:
            ids = [*ids, *sampled, renderer.end_id, *renderer.suffix(heard, ended=True)]
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": heard}]
        if ids != rendered(words, messages):
            return str(words.decode(ids))
    return None


def has_a_place_for(system: str, words: Any) -> bool:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Hello."}]
    try:
        return system in words.apply_chat_template(messages, tokenize=False)
    except jinja2.TemplateError:
        return False


def rendered(words: Any, messages: list[dict[str, str]]) -> list[int]:
    """The template's own text of a conversation, up to the next turn of the policy."""
    text = words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids: list[int] = words.encode(text, add_special_tokens=False)
    return ids


def test_the_tools_of_a_scenario_are_in_the_first_prompt() -> None:
    parameters = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    tool = {"name": "book_visit", "description": "Books a visit.", "parameters": parameters}
    wrong = []
    for name in READABLE:
        words = tokenizer(TEMPLATES[name])
        playing = Renderer(words).within("You help.", [{"type": "function", "function": tool}])
        prompt = words.decode(playing.opening(PERSONA[0]))
        if not ("You help." in prompt and -1 < prompt.find("book_visit") < prompt.rindex(PERSONA[0])):
            wrong.append(f"{name}: {prompt}")
    assert wrong == []


@pytest.mark.parametrize("text", ["I will send you another one.", ""], ids=["text", "call alone"])
def test_a_call_of_a_file_is_written_as_a_policy_would_write_it(text: str) -> None:
    calls = [{"name": "resolution", "arguments": {"value": "replace"}}]
    wrong = []
    for name in READABLE:
        words = tokenizer(TEMPLATES[name])
        renderer = Renderer(words)
        written = renderer.with_calls(text, calls)
        read = message_of(written)
        called = [(call.name, call.input) for call in read.tool_calls or ()]
        control = renderer.control_in(words.encode(written, add_special_tokens=False))
        if (control, read.content, called) != (None, text, [("resolution", {"value": "replace"})]):
            wrong.append(f"{name}: {written}")
    assert wrong == []


def test_templates_that_are_refused_belong_to_models_that_cannot_be_loaded() -> None:
    refused = set()
    for name, template in TEMPLATES.items():
        try:
            Renderer(tokenizer(template))
        except TemplateError:
            refused.add(name)
    assert refused == {name for name in TEMPLATES if is_vision(name)}
    assert not set(VISION.values()) & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert len(TEMPLATES) - len(refused) >= 60
