"""Finds broken sentences: no speech that a person could follow, though every word of it can be read.

The fluency model is a text encoder of its own, which the server passes, and a small head. A sentence that is broken
earns nothing, as any other that cannot be read. It has to be surely broken: people leave out words and make mistakes,
and an honest sentence taken for a broken one costs more than a broken one that is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from safetensors.numpy import load

from personas.reading.embedder import Embedder
from personas.reading.heads import Network, network_of, probabilities
from personas.text.memory import Memory
from personas.text.sentences import sentences as split

ARTEFACT = "fluency.safetensors"
HEAD = "fluency"
LAYERS = 4
"""Of the packaged encoder: the lower two as they are, the others trained."""
SURELY = 0.99
"""Of whole sentences that nobody trained on, at most 1 in 150 of any set is as surely broken (docs/reader.md)."""
MIN_WORDS, MAX_CHARS = 3, 300
"""Shorter sentences are fragments anyway, and longer ones may have been cut by the splitter."""
_ENDS = (".", "!", "?")
KEPT, KEPT_BYTES = 65_536, 24_000_000
"""Sentences of which it is remembered whether they are broken."""


class Fluency:
    """The encoder and the head of an artefact, and what they said of sentences."""

    def __init__(self, embedder: Embedder, head: Network, digest: str) -> None:
        """Judge with these; `digest` names the artefact."""
        self.embedder = embedder
        self.head = head
        self.digest = digest
        self._known: Memory[str, bool] = Memory(KEPT, size_bytes=KEPT_BYTES, cost=lambda text, _: len(text))

    @property
    def version(self) -> str:
        """Identifies encoder and head; part of the scoring version."""
        return f"fluency/{self.digest}/{SURELY}"

    @property
    def held_bytes(self) -> int:
        """Bytes of what is remembered, vectors included."""
        return self._known.held_bytes + int(getattr(self.embedder, "held_bytes", 0))

    def broken(self, sentences: Iterable[str]) -> frozenset[str]:
        """Those that are surely broken; blocking, because the encoder runs."""
        judged = [sentence for sentence in dict.fromkeys(sentences) if is_judged(sentence)]
        known = self._known.recall(judged)
        fresh = [sentence for sentence in judged if sentence not in known]
        if fresh:
            are = {sentence: p >= SURELY for sentence, p in zip(fresh, self.probabilities(fresh), strict=True)}
            self._known.keep(are)
            known |= are
        return frozenset(sentence for sentence in judged if known[sentence])

    async def prefetched(self, texts: Iterable[str]) -> None:
        """Embed those of the texts that are whole sentences, and so will be judged."""
        # Texts that are read include parts of sentences, most of which have no end, and lines put before a sentence.
        wanted = [text for text in texts if text.endswith(_ENDS) and is_judged(text) and len(split(text)) == 1]
        known = self._known.recall(wanted)
        await self.embedder.prefetched([text for text in wanted if text not in known])

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        """The probability that each is broken; blocking."""
        if not sentences:
            return []
        return [float(p) for p in probabilities(self.head, self.embedder.embed(sentences))]


def is_judged(sentence: str) -> bool:
    """True if the model says anything about a sentence of this size."""
    return len(sentence) <= MAX_CHARS and len(sentence.split()) >= MIN_WORDS


def fluency_of(raw: bytes, embedder: Embedder) -> Fluency:
    """The model of an artefact's bytes, whose encoder `embedder` is."""
    return Fluency(embedder, network_of(load(raw), HEAD), hashlib.sha256(raw).hexdigest()[:12])
