"""What one builds first: sentence-transformers with a head behind a plain `def` endpoint of FastAPI.

No authentication, no store, no uncertainty: the baseline that scoring over HTTP is compared with.
"""

from __future__ import annotations

import torch
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

from benchmarks.synthetic import head_scores
from reward_server.encoders.minilm import packaged_folder

torch.set_num_threads(1)
model = SentenceTransformer(str(packaged_folder()), device="cpu")
model.max_seq_length = 512
app = FastAPI()


class Message(BaseModel):
    """One message."""

    role: str
    content: str


class Conversations(BaseModel):
    """What is to be scored."""

    conversations: list[list[Message]]


@app.get("/ping")
async def ping() -> dict[str, str]:
    """Ready."""
    return {"status": "ok"}


@app.post("/score")
def score(body: Conversations) -> dict[str, list[float]]:
    """One score per conversation."""
    texts = ["\n".join(f"{m.role}: {m.content}" for m in each) for each in body.conversations]
    return {"scores": head_scores(model.encode(texts, batch_size=32, show_progress_bar=False)).tolist()}
