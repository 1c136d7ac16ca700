"""Fits heads in several ways on one split, and keeps the way that reads content best.

A way is a reading of the features (`style_choice.readings_to_try`), fitted on judged rows alone or on their
counterparts beside them (`reward_models.counterparts`). In the one that is kept, what joins a reply to its request is
weighed beside the head (`reward_models.relations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reward_server.encoders.encoder import TextEncoder
from reward_server.fitting.reward_model.emphasis import learned_emphasis
from reward_server.fitting.reward_model.head_training import Fitted, Recipe, fit, sharpened
from reward_server.fitting.reward_model.style_choice import Chooser, readings_to_try
from reward_server.reward_models.checkpoint import TrainingCheckpoint
from reward_server.reward_models.conversation import Reads
from reward_server.reward_models.counterparts import Counterparts, counterparts
from reward_server.reward_models.dataset import DatasetSplit, groups_of
from reward_server.reward_models.feature_shelf import CachingDescriber, FeatureShelf
from reward_server.reward_models.heads import Featuriser, Heads, Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.relations import Weighed, weighed
from reward_server.reward_models.segments import by_answers

Beside = Literal["auto", "with", "without"]
"""Whether heads are fitted on counterparts, too; `auto` tries both."""
WITH = "+counterparts"


@dataclass(frozen=True)
class SelectionOptions:
    """The choices to try."""

    features: str
    counterparts: Beside
    reads: Reads
    recipe: Recipe
    relations: bool = True
    """Whether what joins a reply to its request is weighed beside the head."""


@dataclass(frozen=True)
class SelectedFit:
    """The way that was kept."""

    fitted: Fitted
    train: ExampleMatrices
    """The judged rows, as it reads them."""
    validation: ExampleMatrices
    about: dict[str, Any]
    """For the card: which it is, and what each that was tried came to."""

    def alone(self, wanted: SelectionOptions) -> SelectionOptions:
        """To fit in this way and with its penalty again, and in no other."""
        name = str(self.about["features"])
        beside: Beside = "with" if name.endswith(WITH) else "without"
        recipe = replace(wanted.recipe, l2=(self.fitted.l2,))
        return replace(wanted, features=name.removesuffix(WITH), counterparts=beside, recipe=recipe)


@dataclass(frozen=True)
class _Way:
    """The place where a fit is kept when it is interrupted, and how it is reported."""

    featuriser: Featuriser
    checkpoint: TrainingCheckpoint
    title: str

    def inside(self, name: str) -> _Way:
        return _Way(self.featuriser, self.checkpoint.inside(name), f"{self.title}, {name}")


class Selection:
    """The ways to fit heads on one split."""

    def __init__(
        self,
        parts: DatasetSplit,
        wanted: SelectionOptions,
        encoder: TextEncoder,
        shelf: FeatureShelf,
        report: Callable[[str, int, int], None],
    ) -> None:
        self._parts = parts
        self._wanted = wanted
        self._encoder = encoder
        self._shelf = shelf
        self._report = report

    def best(
        self, featuriser: Featuriser, features: Mapping[str, Matrix], checkpoint: TrainingCheckpoint, stage: str
    ) -> SelectedFit:
        """Fit all ways and keep one. `features` holds those of the judged rows, by digest."""
        names, width = self._parts.train.heads, featuriser.width
        judged = [
            ExampleMatrices.of(part, features, names, width) for part in (self._parts.train, self._parts.validation)
        ]
        beside = self._beside(judged[0], featuriser)
        ways = _Way(featuriser, checkpoint, stage)
        candidates: dict[str, Fitted] = {}
        left: dict[str, NDArray[np.bool_]] = {}
        tried = readings_to_try(featuriser, self._parts, self._wanted.features, self._wanted.reads)
        for reading, left_out in tried.items():
            own, middle = (part.without(left_out) for part in judged)
            for suffix, rows in beside.items():
                name = reading + suffix
                way = ways if not candidates else ways.inside(name)
                first = own if rows is None else rows.without(left_out)
                candidates[name], left[name] = self._fitted(first, middle, way, self._wanted.recipe), left_out
        kept, about = self._chosen(candidates, featuriser)
        own, middle = (part.without(left[kept]) for part in judged)
        fitted, has_counterparts = candidates[kept], kept.endswith(WITH)
        rows = beside[WITH if has_counterparts else ""]
        again = partial(self._again, like=fitted, middle=middle, way=ways)
        first = own if rows is None else rows.without(left[kept])
        if stacked := self._weighed(fitted.heads, first, has_counterparts, featuriser, again):
            fitted = replace(fitted, heads=sharpened(stacked.heads, middle))
            about |= {"relations": dict(stacked.weights)}
        return SelectedFit(fitted, own, middle, about)

    def _weighed(
        self,
        heads: Heads,
        rows: ExampleMatrices,
        has_counterparts: bool,
        featuriser: Featuriser,
        again: Callable[[ExampleMatrices, int], Heads],
    ) -> Weighed | None:
        """The head with relations beside it, where it reads what agents said."""
        train = self._parts.train
        if not self._wanted.relations or any(
            by_answers(conversation, self._wanted.reads) for conversation in train.conversations()
        ):
            return None
        beside = self._counterparts.pairs if has_counterparts and self._counterparts else ()
        groups = groups_of((*train.preferred, *beside))
        return weighed(
            heads,
            rows,
            groups,
            judged=len(train.preferred),
            relations=featuriser.relations,
            fitted=again,
        )

    def _again(self, rows: ExampleMatrices, fold: int, *, like: Fitted, middle: ExampleMatrices, way: _Way) -> Heads:
        """A head with the same penalty on other rows."""
        recipe = replace(self._wanted.recipe, l2=(like.l2,))
        return self._fitted(rows, middle, way.inside(f"relations {fold + 1}"), recipe).heads

    @cached_property
    def _counterparts(self) -> Counterparts | None:
        if self._wanted.counterparts == "without":
            return None
        return counterparts(self._parts.train, self._encoder, self._wanted.reads)

    def _beside(self, judged: ExampleMatrices, featuriser: Featuriser) -> dict[str, ExampleMatrices | None]:
        """By what a way's name ends in, the rows to fit on in place of the judged ones."""
        if self._counterparts is None:
            return {"": None}
        conversations = list(self._counterparts.conversations())
        features = self._shelf.features(featuriser, conversations, partial(self._report, "encoding counterparts"))
        rows = self._counterparts.beside(judged, features)
        return {WITH: rows} if self._wanted.counterparts == "with" else {"": None, WITH: rows}

    def _fitted(self, first: ExampleMatrices, middle: ExampleMatrices, way: _Way, recipe: Recipe) -> Fitted:
        fitted = fit(
            self._parts.train.heads,
            first,
            middle,
            recipe,
            emphasis=learned_emphasis(first, way.featuriser.emphasis, way.featuriser.kinds),
            costs=way.featuriser.costs,
            scratch=self._shelf.folder,
            checkpoint=way.checkpoint,
            on_epoch=lambda done, total: self._report(way.title, done, total),
        )
        self._report(way.title, 1, 1)
        return fitted

    def _chosen(self, candidates: Mapping[str, Fitted], featuriser: Featuriser) -> tuple[str, dict[str, Any]]:
        """The way that is kept, and what the card says of it."""
        if len(candidates) == 1:
            [only] = candidates
            return only, {"features": only}
        chooser = Chooser(self._parts.validation, self._encoder, self._wanted.reads)
        shelved = CachingDescriber(featuriser, self._shelf)
        outcomes = {name: chooser.outcome(candidate.heads, shelved) for name, candidate in candidates.items()}
        merits = {name: round(outcome.merit, 4) for name, outcome in outcomes.items()}
        return chooser.best(outcomes), {"features": chooser.best(outcomes), "features_tried": merits}
