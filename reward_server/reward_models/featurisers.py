"""Provides the featuriser that a reward model needs: on the encoder of the setting, or on the model's own.

A model fits only the encoder and the features it was trained with. Where those of this server are others, it is
refused with a line that says so; nothing is put in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock

from reward_server.encoders.encoder import Precision, TextEncoder, same_weights
from reward_server.encoders.loading import load_fast_encoder
from reward_server.errors import UnusableModel
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.features import ConversationFeaturiser


class Featurisers:
    """Makes featurisers on one base encoder, which is loaded when it is first needed."""

    def __init__(
        self, encoder_name: str, load: Callable[[str], TextEncoder] | None = None, *, precision: Precision = "auto"
    ) -> None:
        """Args: load: makes the base encoder, by default in this precision, which tuned encoders have in any case."""
        self._name = encoder_name
        self._load = load or partial(load_fast_encoder, precision=precision)
        self._precision: Precision = precision
        self._lock = Lock()
        self._made: dict[Reads, ConversationFeaturiser] = {}
        self._encoder: TextEncoder | None = None

    @property
    def precision(self) -> Precision:
        """Of tuned encoders, and of the base one where nothing else was said."""
        return self._precision

    @property
    def encoder_name(self) -> str:
        """The setting: the packaged encoder, a folder or a hub name."""
        return self._name

    @property
    def encoder(self) -> TextEncoder:
        """The base encoder; blocking the first time."""
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load(self._name)
            return self._encoder

    @property
    def base(self) -> ConversationFeaturiser:
        """The featuriser on the base encoder that reads answers."""
        return self.reading("answers")

    def reading(self, reads: Reads) -> ConversationFeaturiser:
        """The featuriser on the base encoder: one of a kind, so that what it remembers is shared."""
        encoder = self.encoder
        with self._lock:
            if reads not in self._made:
                self._made[reads] = ConversationFeaturiser(encoder, reads=reads)
            return self._made[reads]

    def of(self, artefact: Artefact) -> ConversationFeaturiser:
        """The featuriser that a model was trained with.

        Raises:
            UnusableModel: this server has another encoder or other features.
        """
        weights = artefact.encoder_weights
        if weights is None:
            featuriser, version = self.reading(artefact.card.reads), self.encoder.version
        else:
            from reward_server.reward_models.base_encoder import load_tuned

            tuned = load_tuned(self._name, weights, self._precision)
            featuriser, version = ConversationFeaturiser(tuned, reads=artefact.card.reads), tuned.version
        check_fits(artefact, version, featuriser.version)
        costs = artefact.heads.costs
        if featuriser.costs.any() and (costs is None or not (costs == featuriser.costs).all()):
            raise UnusableModel(f"{artefact.id} was trained without the limits on what may only cost: train again")
        return featuriser


def check_fits(artefact: Artefact, encoder_version: str, features_version: str) -> None:
    """Refuse a model whose features are not those of this server.

    Raises:
        UnusableModel: it was trained with another encoder or other features.
    """
    card = artefact.card
    if not same_weights(card.encoder_version, encoder_version):
        raise UnusableModel(
            f"{card.id} was trained with the encoder {card.encoder_version}, this is {encoder_version}: set the "
            f"encoder to {card.encoder}, or train again"
        )
    if not same_weights(card.features_version, features_version):
        raise UnusableModel(
            f"{card.id} was trained on {card.features_version}, this version makes {features_version}: train again"
        )
