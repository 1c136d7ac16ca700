"""A reward model on disk: a folder with the heads, a tuned encoder if there is one, and a card that says what it is.

    heads.safetensors     weights, standardisation and sharpness of the heads
    encoder.safetensors   the encoder's weights, only where it was fine-tuned
    card.json             id, data, split, versions, metrics, and the hash of every other file that matters
    report.md, *.png      for people

The id is a hash of heads and card, of its notes on the data, too. A folder appears whole or not at all; loading
verifies every hash and refuses another schema. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from reward_server.errors import InvalidRequest, UnusableModel
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.heads import Heads, Link

SCHEMA = "labs.reward-model/1"
HEADS, ENCODER, CARD, REPORT = "heads.safetensors", "encoder.safetensors", "card.json", "report.md"
_NOT_HASHED = {"id", "created"}


class DataCard(BaseModel):
    """The data that the model was trained on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    labelled: int
    pairs: int
    groups: int
    grouped_by: str
    systems: tuple[str, ...] = ()
    """Who wrote the replies it learned from, where rows name them."""
    source: str
    """`file` or `store`; the name of a file would say more than a reader of the card should know."""
    scale: tuple[float, float] = (0.0, 1.0)
    notes: tuple[str, ...] = ()


class Card(BaseModel):
    """Everything there is to know about a model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_: Literal["labs.reward-model/1"] = Field(default="labs.reward-model/1", alias="schema")
    id: str = Field(pattern=r"^rm_[0-9a-f]{12}$")
    created: datetime
    data: DataCard
    split: dict[str, int]
    """Rows per part, and duplicates that were taken out."""
    recipe: dict[str, Any]
    """Settings of the training, with the chosen strength of the penalty and the kept epoch."""
    encoder: str
    """Name of the encoder, as the setting has it."""
    encoder_version: str
    features_version: str
    reads: Reads = "answers"
    """What an agent earns by in a scenario: the answers it got, or its own words, too."""
    heads: tuple[str, ...]
    link: Link
    sharpness: float
    finetuning: dict[str, Any] = Field(default_factory=dict)
    """Whether fine-tuning was tried, what it reached, and which encoder was kept."""
    metrics: dict[str, Any] = Field(default_factory=dict)
    """Held-out figures with intervals: of each head, of the pairs."""
    baselines: dict[str, Any] = Field(default_factory=dict)
    style: dict[str, Any] = Field(default_factory=dict)
    """By style set its pairs and the share in the right order; empty where there was nothing to check by."""
    ceiling: dict[str, Any] = Field(default_factory=dict)
    uncertainty: dict[str, Any] = Field(default_factory=dict)
    code_version: str
    engine: str
    """Hash of the program text that trained it."""
    files: dict[str, str]
    """sha256 of every file that decides a value."""


@dataclass(frozen=True)
class Artefact:
    """A loaded reward model, verified; the encoder is not part of it."""

    folder: Path
    card: Card
    heads: Heads
    extras: Mapping[str, bytes]
    """Further files that decide a value, such as the uncertainty's."""

    @property
    def id(self) -> str:
        """`rm_` and 12 hexadecimal digits."""
        return self.card.id

    @property
    def encoder_weights(self) -> Path | None:
        """The weights of the tuned encoder; None where the encoder is the one of the setting."""
        return self.folder / ENCODER if ENCODER in self.card.files else None


def write(
    folder: Path,
    heads: Heads,
    about: Mapping[str, Any],
    created: datetime,
    *,
    encoder: bytes | None = None,
    extras: Mapping[str, bytes] | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> Card:
    """Write a model's folder, whole or not at all.

    Args:
        about: the fields of the card that the heads do not tell.
        encoder: the weights of a tuned encoder (safetensors).
        extras: files that decide a value; part of the id.
        beside: files for people, such as plots; not part of the id.

    Raises:
        InvalidRequest: the folder exists and is not empty, or cannot be written.
    """
    refuse_taken(folder)
    files: dict[str, bytes] = {HEADS: _packed(heads), **(extras or {})}
    if encoder is not None:
        files[ENCODER] = encoder
    fields = {
        **about,
        "schema": SCHEMA,
        "heads": heads.names,
        "link": heads.link,
        "sharpness": heads.sharpness,
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    }
    draft = Card(id="rm_" + "0" * 12, created=created, **fields)
    card = draft.model_copy(update={"id": content_id(draft)})
    text = json.dumps(card.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"
    card = Card.model_validate_json(text)  # as whoever reads it will have it
    _place(folder, {**files, **(beside or {}), CARD: text.encode()})
    return card


def content_id(card: Card) -> str:
    """The id that a card's content amounts to: the same data, seed, notes and program give the same one."""
    content = card.model_dump(mode="json", by_alias=True, exclude=_NOT_HASHED)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"rm_{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def refuse_taken(folder: Path) -> None:
    """Refuse a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidRequest(f"{folder} exists and is not empty: give another folder")


def read_card(folder: Path) -> Card:
    """The card alone, unverified: enough for a list.

    Raises:
        UnusableModel: there is none, or it is of another schema.
    """
    try:
        raw = (folder / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UnusableModel(f"{folder} holds no reward model: there is no readable {CARD}") from None
    try:
        return Card.model_validate_json(raw)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "its structure"
        raise UnusableModel(f"{folder / CARD} is no card of schema {SCHEMA}: see {where}") from None


def read(folder: Path) -> Artefact:
    """A model with every hash verified.

    Raises:
        UnusableModel: a file is missing or damaged, or the card was changed.
    """
    card = read_card(folder)
    if content_id(card) != card.id:
        raise UnusableModel(f"{folder / CARD} was changed: its content is not that of {card.id}")
    contents: dict[str, bytes] = {}
    for name, expected in card.files.items():
        if Path(name).name != name:
            raise UnusableModel(f"{folder / CARD} names a file outside its folder")
        try:
            # A pipe or a device would be read for ever.
            content = (folder / name).read_bytes() if (folder / name).is_file() else None
        except OSError:
            content = None
        if content is None:
            raise UnusableModel(f"{card.id} is incomplete: {name} is missing or unreadable in {folder}") from None
        if hashlib.sha256(content).hexdigest() != expected:
            raise UnusableModel(f"{card.id} is damaged: {name} in {folder} has another hash than its card says")
        contents[name] = content
    extras = {name: content for name, content in contents.items() if name not in {HEADS, ENCODER}}
    return Artefact(folder, card, _unpacked(card, contents.get(HEADS, b"")), extras)


def copy(artefact: Artefact, folder: Path) -> None:
    """A copy of the whole folder, plots included; appears whole or not at all."""
    files = {path.name: path.read_bytes() for path in artefact.folder.iterdir() if path.is_file()}
    _place(folder, files)


def _place(folder: Path, files: Mapping[str, bytes]) -> None:
    draft = folder.with_name(f".{folder.name}-{secrets.token_hex(6)}")
    try:
        draft.mkdir(parents=True)
        for name, content in files.items():
            with (draft / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if folder.exists():
            folder.rmdir()  # it is empty, see `refuse_taken`
        os.replace(draft, folder)
    except OSError as error:
        raise InvalidRequest(f"{folder} cannot be written: {error.strerror or type(error).__name__}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _packed(heads: Heads) -> bytes:
    tensors: dict[str, NDArray[Any]] = {
        "weights": heads.weights,
        "bias": heads.bias,
        "centre": heads.centre,
        "scale": heads.scale,
        "sharpness": np.array([heads.sharpness], dtype=np.float64),
    }
    if heads.costs is not None:
        tensors["costs"] = heads.costs
    packed: bytes = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    return packed


def _unpacked(card: Card, content: bytes) -> Heads:
    try:
        tensors = load(content)
        heads = Heads(
            names=card.heads,
            centre=tensors["centre"],
            scale=tensors["scale"],
            weights=tensors["weights"],
            bias=tensors["bias"],
            sharpness=float(tensors["sharpness"][0]),
            link=card.link,
            costs=tensors.get("costs"),
        )
    except (SafetensorError, KeyError, IndexError, TypeError, ValueError) as error:
        raise UnusableModel(f"{card.id} is damaged: {HEADS} cannot be read") from error
    if not _fits(heads):
        raise UnusableModel(f"{card.id} is damaged: {HEADS} does not fit its card")
    return heads


def _fits(heads: Heads) -> bool:
    """True if shapes agree and outputs will be numbers; a scale is infinite where a feature never varied."""
    rows, columns = heads.weights.shape if heads.weights.ndim == 2 else (0, 0)
    shapes_agree = (
        rows == len(heads.names) > 0
        and heads.bias.shape == (rows,)
        and heads.centre.shape == heads.scale.shape == (columns,)
    )
    finite = (heads.weights, heads.bias, heads.centre, np.array(heads.sharpness))
    whole = shapes_agree and all(np.isfinite(each).all() for each in finite) and bool((heads.scale > 0.0).all())
    return whole and _only_cost(heads)


def _only_cost(heads: Heads) -> bool:
    """True if what may only lower a value does."""
    costs = heads.costs
    if costs is None:
        return True
    return costs.dtype == np.bool_ and costs.shape == heads.centre.shape and bool((heads.weights[:, costs] <= 0).all())
