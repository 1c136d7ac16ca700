"""Readings with the probabilities that a collection's own calibration makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from personas.case.calibration import PlattScaling, ReaderCalibration
from personas.reading.acts import ReadCandidate, Reading, Sentence


def calibrated(reading: Reading, calibration: ReaderCalibration) -> Reading:
    """The reading, its topics and commitments as probable as the maps say; their order stays."""
    return replace(reading, sentences=tuple(_calibrated(each, calibration) for each in reading.sentences))


def _calibrated(sentence: Sentence, calibration: ReaderCalibration) -> Sentence:
    return replace(
        sentence,
        topics=_mapped(sentence.topics, calibration.topic),
        commitments=_mapped(sentence.commitments, calibration.commitment),
    )


def _mapped(candidates: Iterable[ReadCandidate], scaling: PlattScaling) -> tuple[ReadCandidate, ...]:
    return tuple(replace(each, confidence=scaling.of(each.confidence)) for each in candidates)
