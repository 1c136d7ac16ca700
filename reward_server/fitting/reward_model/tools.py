"""Tools with which a training turns conversations into numbers."""

from __future__ import annotations

from reward_server.fitting.reward_model.train import FeatureTools
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.plain_features import PlainFeatures


def tools_on(featurisers: Featurisers, reads: Reads, shelf: FeatureShelf) -> FeatureTools:
    """Those on the encoder of these featurisers; loads it."""
    encoder = featurisers.encoder
    return FeatureTools(
        featurisers.reading(reads),
        PlainFeatures(encoder),
        encoder.version,
        shelf,
    )
