"""The calls about scenarios and what scores them."""

from __future__ import annotations

from trainer_client.calls import Call, new_key, query_of, segment
from trainer_client.methods import method, pages_of
from trainer_client.wire import (
    CalibrationList,
    CalibrationResponse,
    CalibrationSummary,
    CatalogResponse,
    CollectionResponse,
    DriftResponse,
    RewardModelList,
    RewardModelResponse,
    RewardModelSummary,
    ScenarioResponse,
    UsageResponse,
)


class CatalogCalls:
    """Scenarios, and what scores them."""

    @method
    def catalog(self) -> Call[CatalogResponse]:
        """All collections and scenarios this key may use."""
        return Call("GET", "/catalog", CatalogResponse)

    @method
    def collection(self, slug: str) -> Call[CollectionResponse]:
        """One collection."""
        return Call("GET", f"/collections/{segment(slug)}", CollectionResponse)

    @method
    def scenario(self, collection_slug: str, slug: str) -> Call[ScenarioResponse]:
        """One scenario."""
        return Call("GET", f"/collections/{segment(collection_slug)}/scenarios/{segment(slug)}", ScenarioResponse)

    @pages_of(CalibrationSummary)
    def calibrations(self, *, limit: int | None = None, cursor: str | None = None) -> Call[CalibrationList]:
        """The scales on which `reward_config.calibration` can show a reward."""
        return Call("GET", "/calibrations", CalibrationList, query=query_of(limit=limit, cursor=cursor))

    @pages_of(RewardModelSummary)
    def reward_models(self, *, limit: int | None = None, cursor: str | None = None) -> Call[RewardModelList]:
        """The learned reward models of the server, newest first."""
        return Call("GET", "/reward-models", RewardModelList, query=query_of(limit=limit, cursor=cursor))

    @method
    def drift(self, *, collection_slug: str | None = None) -> Call[DriftResponse]:
        """By scenario, how far the lab's latest rewards have moved from those before them."""
        return Call("GET", "/drift", DriftResponse, query=query_of(collection_slug=collection_slug))

    @method
    def delete_calibration(self, calibration_id: str) -> Call[CalibrationResponse]:
        """Delete a calibration of the lab's own."""
        return Call("DELETE", f"/calibrations/{segment(calibration_id)}", CalibrationResponse)

    @method
    def activate_reward_model(self, reward_model_id: str, *, force: bool = False) -> Call[RewardModelResponse]:
        """Let a learned model serve from now on, `force` even one that is unfit; it changes the scoring version.

        One that all labs share takes an operator's key.
        """
        path = f"/reward-models/{segment(reward_model_id)}/activate"
        query = query_of(force="true" if force else None)
        return Call("POST", path, RewardModelResponse, idempotency_key=new_key(), query=query)

    @method
    def deactivate_reward_model(self, reward_model_id: str) -> Call[RewardModelResponse]:
        """Let a model of the lab's own serve no longer."""
        path = f"/reward-models/{segment(reward_model_id)}/deactivate"
        return Call("POST", path, RewardModelResponse, idempotency_key=new_key())

    @method
    def delete_reward_model(self, reward_model_id: str) -> Call[RewardModelResponse]:
        """Delete a model of the lab's own that does not serve."""
        return Call("DELETE", f"/reward-models/{segment(reward_model_id)}", RewardModelResponse)

    @method
    def usage(self, *, days: int | None = None) -> Call[UsageResponse]:
        """Return the lab's usage, by day, and its limits."""
        return Call("GET", "/usage", UsageResponse, query=query_of(days=days))
