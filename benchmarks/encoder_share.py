"""How much of scoring is the reader's text encoder: CPU time inside it over all CPU time, in this process.

Usage: python -m benchmarks.encoder_share [--conversations 120] [--write]

One thread. "fresh" conversations hold no sentence the encoder has seen, "seen" ones are scored a second time.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from benchmarks.conversations import Conversation, fresh, played
from benchmarks.report import Table, environment, write
from personas.reading.heads import load_heads
from personas.reading.reader import LocalReader
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.encoders.loading import load_encoder
from reward_server.reader.encoder import artefact_bytes, load_reader_encoder
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import build_scorer
from reward_server.transcripts.transcript import Transcript
from scenarios.library import Library, load_library
from trainer_client.wire import Message


class TimedEncoder:
    """The encoder, with its CPU time added up."""

    def __init__(self) -> None:
        self._encoder = load_reader_encoder(artefact_bytes())
        self.cpu_s = 0.0
        self.texts = 0

    @property
    def version(self) -> str:
        """Of the encoder."""
        return self._encoder.version

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self._encoder.width

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode, timed."""
        started = time.thread_time()
        vectors = self._encoder.encode(texts)
        self.cpu_s += time.thread_time() - started
        self.texts += len(texts)
        return vectors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=120)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/encoder_share.md")
    arguments = parser.parse_args()
    library, encoder = load_library(), TimedEncoder()
    matcher = EncoderMatcher(load_encoder())
    reader = LocalReader(EncoderMatcher(encoder), load_heads(artefact_bytes()))
    conversations = fresh(played(library, reader, turns=8), arguments.conversations, seed=5)
    table = Table(
        f"scoring {len(conversations)} conversations of 8 turns in one batch, one thread",
        ["", "conversations per CPU-second", "sentences encoded", "encoder's share of CPU"],
    )
    with ThreadPoolExecutor(1) as threads:
        scorer = build_scorer(library, matcher, reader, threads, disclosure=FULL_DISCLOSURE)
        requests = [request(library, conversation) for conversation in conversations]
        for case in ("fresh", "seen"):
            encoder.cpu_s, encoder.texts = 0.0, 0
            cpu = asyncio.run(score(scorer, requests))
            rate = len(requests) / cpu
            table.add(case, f"{rate:.0f}", encoder.texts, f"{encoder.cpu_s / cpu:.0%}")
    print(table.text())
    if arguments.write:
        write("encoder_share", f"{environment()}\n\n{table.text()}")


def request(library: Library, conversation: Conversation) -> ScoreRequest:
    """What the scorer takes."""
    sealed = library.vault.open(conversation.collection, conversation.scenario)
    messages = [Message.model_validate(message) for message in conversation.messages]
    transcript = Transcript.from_messages(messages, "assistant", sealed.card.tools)
    return ScoreRequest(conversation.collection, conversation.scenario, transcript)


async def score(scorer: Scorer, requests: list[ScoreRequest]) -> float:
    """CPU seconds of the whole process for one batch."""
    started = time.process_time()
    outcomes = await scorer.score(requests)
    elapsed = time.process_time() - started
    if not all(isinstance(outcome, Scored) for outcome in outcomes):
        raise RuntimeError("a conversation was not scored")
    return elapsed


if __name__ == "__main__":
    main()
