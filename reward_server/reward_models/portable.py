"""A reward model outside of the server: exported as a folder, and loaded from one.

    from reward_server.reward_models.portable import load
    print(load("folder").score([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello, and?"}]))

The folder holds the artefact, the encoder it was trained with as a sentence-transformers model, and a README.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_server.reward_models import artefact as artefacts
from reward_server.reward_models.artefact import Artefact, Card
from reward_server.reward_models.base_encoder import base_folder, is_packaged, load_base, load_weights
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.heads import Featuriser
from reward_server.reward_models.known_rows import ROWS
from reward_server.reward_models.model import UNCERTAINTY, RewardModel, model_of
from reward_server.reward_models.recorded import conversation_from
from trainer_client.wire import Role

BASE, TUNED = "encoder", "tuned-encoder"


class PortableModel:
    """A loaded reward model that scores messages."""

    def __init__(self, card: Card, model: RewardModel, featuriser: Featuriser) -> None:
        self.card = card
        self._model = model
        self._featuriser = featuriser

    def score(
        self, messages: Sequence[Mapping[str, Any]], *, scenario: str = "", agent_role: Role = "assistant"
    ) -> dict[str, float]:
        """Values in [0, 1] by head, `score` first; `epistemic` and `noise` where they are known."""
        conversation = conversation_from(messages, agent_role, scenario)
        found = self._model.predict(self._featuriser.features([conversation]))
        values = dict(zip(self._model.heads.names, map(float, found.values[0]), strict=True))
        if found.epistemic is not None:
            values["epistemic"] = float(found.epistemic[0])
        if found.noise is not None:
            values["noise"] = float(found.noise[0])
        return values


def load(folder: Path | str) -> PortableModel:
    """A model from its artefact or from an export; every hash is verified.

    Raises:
        UnusableModel: it is damaged, or its encoder is not here.
    """
    found = artefacts.read(Path(folder))
    base = Path(folder) / BASE
    name = str(base) if base.is_dir() and not is_packaged(found.card.encoder) else found.card.encoder
    return PortableModel(found.card, model_of(found), Featurisers(name).of(found))


def export(artefact: Artefact, folder: Path) -> None:
    """Write a model with its encoder and a README to a new folder.

    Raises:
        InvalidRequest: the folder is taken or cannot be written.
        EncoderUnavailable: the encoder it was trained with is not here.
    """
    artefacts.refuse_taken(folder)
    source = Path(base_folder(artefact.card.encoder))
    if not source.is_dir():
        model = load_base(artefact.card.encoder)  # a hub name: loading it first shows that it can be had
    artefacts.copy(artefact, folder)
    if source.is_dir():
        # As it is: another copy of the same weights would go by another name.
        shutil.copytree(source, folder / BASE)
    else:
        model.save(str(folder / BASE))
    if artefact.encoder_weights is not None:
        tuned = load_base(artefact.card.encoder)
        load_weights(tuned, artefact.encoder_weights.read_bytes())
        tuned.save(str(folder / TUNED))
    (folder / "README.md").write_text(_readme(artefact.card), encoding="utf-8")


def _readme(card: Card) -> str:
    figures = [
        f"| {name} | {found['n']} | "
        + " | ".join(_figure(found, each) for each in ("r2", "spearman", "pairwise"))
        + " |"
        for name, found in card.metrics.items()
    ]
    link = "values are cut to [0, 1]" if card.link == "identity" else "the value is sigmoid(output): the chance to win"
    return f"""# Reward model {card.id}

Scores whole conversations of an agent and a persona (or user). Heads: {", ".join(card.heads)}.

Trained on {card.data.labelled} labelled conversations and {card.data.pairs} preference pairs,
data {card.data.sha256[:12]}, split by {card.data.grouped_by}. Held out:

| head | n | R² | Spearman | pairs in order |
| --- | --- | --- | --- | --- |
{chr(10).join(figures)}

It is good for conversations like those it was trained on. `report.md` has {_more(card)}.{_doubt(card)}

## Use

The code that reads it is the Labs repository's: `pip install` a checkout of it (Python 3.11 to 3.13), or where its
dependencies are installed put the checkout on `PYTHONPATH`. Then, in this folder:

```python
from reward_server.reward_models.portable import load

print(load(".").score([{{"role": "user", "content": "Hi"}}, {{"role": "assistant", "content": "How can I help?"}}]))
```

## Files

- `card.json`: everything about the model, with the sha256 of each file below.
- `heads.safetensors`: `weights` (heads, features), `bias`, `centre`, `scale`; the output is
  `weights @ ((features - centre) / scale) + bias`; {link}. Features: `{card.features_version}`.
{_further_files(card)}"""


def _more(card: Card) -> str:
    figures = [each for found in card.metrics.values() for each in found.values() if isinstance(each, Mapping)]
    return "intervals and baselines" if any("low" in each for each in figures) else "baselines, but no intervals"


def _doubt(card: Card) -> str:
    told = "\nIt does not know how sure it is: there was too little data (`notes` in `card.json`)."
    return "" if UNCERTAINTY in card.files else told


def _further_files(card: Card) -> str:
    """A line for each file and folder that is there."""
    what = {
        UNCERTAINTY: "the posterior of the overall head, or the ensemble around it.",
        ROWS: "hashes of the conversations it was trained on; whoever has one can find it here, nobody can read it.",
        artefacts.ENCODER: "the weights of the encoder as it was fine-tuned.",
    }
    lines = [f"- `{name}`: {text}\n" for name, text in what.items() if name in card.files]
    tuned = artefacts.ENCODER in card.files
    lines.append(f"- `{BASE}/`: the text encoder{' before that' if tuned else f' {card.encoder_version}'}, ")
    lines.append("as a sentence-transformers model.\n")
    if tuned:
        lines.append(f"- `{TUNED}/`: the fine-tuned encoder {card.encoder_version} as a sentence-transformers model.\n")
    return "".join(lines)


def _figure(found: Mapping[str, Any], name: str) -> str:
    return f"{found[name]['value']:.3f}" if name in found else "–"
