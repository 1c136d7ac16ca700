"""Mistakes that were found in another system of this kind, and the tests that keep each of them out of this one.

The list is checked: a test that is renamed or goes away is missed here. Mistakes of parts that this system does not
have (a dashboard with trends, alert rules, a server that proxies a model) have no line.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

REWARD_MODEL = {
    "a sigmoid over a regressor: a perfect 0 is served as 0.5": (
        "reward_models/test_training.py::test_a_regressor_serves_what_it_was_taught_over_the_whole_range",
        "reward_models/test_heads.py::test_outputs_are_cut_not_squashed",
    ),
    "only the last answer is read, without order, party or scenario": (
        "reward_models/test_serving.py::test_every_turn_counts_not_only_the_last",
        "reward_models/test_features.py::test_an_early_turn_is_seen",
        "reward_models/test_features.py::test_the_order_of_turns_is_seen",
        "reward_models/test_features.py::test_who_said_it_is_seen",
        "reward_models/test_features.py::test_the_scenario_is_seen",
    ),
    "the second phase leaves the encoder frozen": (
        "reward_models/test_finetune.py::test_phase_two_moves_the_encoder_and_lowers_the_loss",
    ),
    "early stopping keeps the last weights": (
        "reward_models/test_training.py::test_the_best_epoch_is_kept_not_the_last",
    ),
    "a warm-up as long as a short run": (
        "reward_models/test_training.py::test_warm_up_is_a_share_of_the_run_so_short_runs_learn_too",
    ),
    "a cache of predictions that is unbounded, collides, and is stale after retraining": (
        "reward_models/test_serving.py::test_another_model_serves_from_the_next_call_on_and_nothing_old_is_answered",
        "reward_models/test_reading_boundaries.py::test_no_two_texts_share_a_place_in_memory",
        "encoders/test_encoder.py::test_more_texts_than_the_cache_holds_are_still_answered",
        "contract/test_activation.py::test_a_batch_is_scored_by_the_model_it_began_with",
    ),
    "any exception is served as 0.5": (
        "reward_models/test_serving.py::test_what_cannot_be_estimated_is_a_failure_never_a_constant",
        "contract/test_reward_models.py::test_a_damaged_model_makes_no_reward",
    ),
    "without its encoder it silently becomes a bag of words": (
        "reward_models/test_serving.py::test_there_is_no_fall_back_encoder",
        "reward_models/test_finetune.py::test_an_encoder_that_is_not_there_is_no_other_encoder",
        "encoders/test_encoder.py::test_other_weights_are_refused",
    ),
    "no preferences, no ties, no heads, no uncertainty, one figure": (
        "reward_models/test_training.py::test_labels_and_preferences_are_learned_together",
        "reward_models/test_training.py::test_a_tie_pulls_the_two_sides_together",
        "reward_models/test_training.py::test_scores_of_held_out_dialogues_are_predicted_by_head",
        "reward_models/test_metrics.py::test_predicting_the_mean_explains_nothing_though_its_mse_is_small",
    ),
    "every input is padded and computed alone": (
        "encoders/test_micro_batcher.py::test_what_queued_during_a_batch_is_the_next_batch",
        "encoders/test_fast_encoder.py::test_a_vector_is_bitwise_the_same_in_any_batch_and_order",
    ),
}

CALIBRATION = {
    "the identity for the first calls, and then a jump of units": (
        "reward_models/test_calibration.py::test_before_the_least_number_of_rows_there_is_no_calibration_at_all",
        "trainer_client/test_scaling.py::test_during_the_warm_up_nothing_is_scaled_so_that_nothing_jumps",
    ),
    "statistics that are refreshed now and then": (
        "trainer_client/test_scaling.py::test_ninety_nine_tens_after_a_hundred_zeros_count_at_once",
        "trainer_client/test_scaling.py::test_statistics_are_exact_after_every_reward",
    ),
    "outliers are stretched beyond the scale": (
        "reward_models/test_calibration.py::test_an_outlier_is_cut_and_not_stretched",
        "trainer_client/test_scaling.py::test_an_outlier_is_cut",
    ),
    "one NaN switches it off silently": (
        "reward_models/test_calibration.py::test_one_value_that_is_no_number_is_refused_and_not_passed_through",
        "trainer_client/test_scaling.py::test_what_is_no_number_is_refused_and_leaves_nothing_behind",
    ),
    "an unknown method is the identity": (
        "reward_models/test_calibration.py::test_a_method_and_data_of_another_kind_are_refused",
    ),
    "without variance the raw reward comes through": (
        "reward_models/test_calibration.py::test_rewards_without_variance_are_refused",
        "trainer_client/test_scaling.py::test_equal_rewards_are_scaled_to_0",
    ),
    "two rewards of one name share their statistics": (
        "reward_models/test_calibration.py::test_two_maps_of_one_name_are_refused",
        "trainer_client/test_scaling.py::test_keys_are_kept_apart",
    ),
    "adaptive scaling feeds back on what it scaled": (
        "trainer_client/test_scaling.py::test_scaling_does_not_feed_back_on_what_it_scaled",
    ),
    "calibration never meets a label": (
        "reward_models/test_calibration.py::test_calibrating_lowers_the_error_on_rows_that_were_not_fitted",
        "reward_models/test_calibration.py::test_scaling_says_that_it_is_scaling_and_claims_no_error",
    ),
}

LEARNER = {
    "the KL term has the gradient of the other divergence": (
        "learner/test_kl_gradient.py::test_each_term_pulls_its_own_divergence_down",
    ),
    "what samples is not the policy that is trained": (
        "learner/test_generate.py::test_the_samplers_log_probabilities_are_the_learners",
        "learner/test_generate.py::test_tokens_come_up_as_often_as_their_probability_says",
        "learner/test_update.py::test_one_step_is_on_policy_and_reports_the_mismatch",
    ),
    "several updates are several passes over everything": (
        "learner/test_minibatches.py::test_every_example_is_in_exactly_one_step",
        "learner/test_update.py::test_several_steps_use_the_samplers_log_probabilities_as_the_old_ones",
    ),
    "groups that differ by noise train at full strength": (
        "learner/test_advantages.py::test_only_groups_that_differ_by_more_than_noise_are_informative",
        "learner/test_update.py::test_groups_without_a_difference_are_left_out",
    ),
    "lambda below zero for short answers": (
        "learner/test_advantages.py::test_the_length_adaptive_lambda_is_never_negative",
    ),
    "a NaN reward silently zeroes its group": (
        "learner/test_types.py::test_what_cannot_be_trained_on_is_no_trajectory",
        "learner/test_update.py::test_an_errored_member_changes_nothing_for_the_others",
    ),
    "objectives that are not those of the papers they are named after": (
        "learner/test_objectives.py::test_loss_and_gradient_are_the_golden_ones",
        "learner/test_advantages.py::test_sequence_advantages_are_the_golden_ones",
    ),
    "one number for a whole conversation of many turns": (
        "learner/test_update.py::test_credit_per_turn_compares_what_was_gained_from_that_turn_on",
    ),
}

LLM_JUDGE = {
    "the first number in the text is the score": (
        "judges/test_llm_reading.py::test_a_number_is_no_verdict",
        "llm/test_answers.py::test_another_shape_is_malformed",
    ),
    "scores beyond the scale are clamped, and true is 1": (
        "llm/test_answers.py::test_a_broken_limit_is_out_of_range",
        "judges/test_llm_reading.py::test_nothing_is_coerced_into_a_verdict",
        "scoring/test_composite_rewards.py::test_what_is_no_estimate_is_a_failure_and_never_clipped",
    ),
    "the cache's key lacks what the verdict depends on": (
        "judges/test_llm_kept.py::test_whatever_matters_makes_another_key",
        "judges/test_llm_pairwise.py::test_whatever_matters_makes_another_key",
    ),
    "one number for all criteria": ("judges/test_llm_judge.py::test_verdicts_come_in_the_order_of_the_criteria",),
    "what is judged is pasted between headings": (
        "judges/test_llm_prompt.py::test_a_transcript_cannot_close_its_own_block",
        "judges/test_llm_prompt.py::test_the_transcript_is_one_line_of_json_that_means_what_was_said",
    ),
    "pairs in one order": (
        "judges/test_llm_pairwise.py::test_a_model_that_prefers_a_position_prefers_nobody",
        "judges/test_llm_pairwise.py::test_swapping_the_two_swaps_the_winner_and_asks_the_very_same_questions",
    ),
    "a name in prose is read as a tie": ("judges/test_llm_reading.py::test_a_pair_has_three_answers",),
    "one failed item loses the scores of its batch": (
        "judges/test_llm_judge.py::test_one_failed_case_leaves_the_others_of_the_batch_scored",
        "contract/test_evaluate.py::test_a_judge_that_fails_on_an_item_gives_it_no_number",
    ),
    "after an outage a count of phrases is the reward": (
        "scoring/test_rank_ruler.py::test_every_failure_of_the_provider_is_a_failed_judge",
        "contract/test_llm_judges.py::test_no_failure_becomes_a_number",
    ),
    "relative scores are cached, under a key that collides": (
        "scoring/test_rank.py::test_nothing_is_remembered_between_groups",
    ),
    "a group is cut into batches whose scores do not compare": (
        "scoring/test_rank_ruler.py::test_sixty_four_members_stand_in_one_question_each_way",
        "scoring/test_rank_ruler.py::test_a_group_that_does_not_fit_into_one_question_is_not_split",
    ),
    "a group of one has a relative score": (
        "scoring/test_rank.py::test_one_distinct_transcript_compares_with_nothing",
    ),
    "a call goes on after its deadline": (
        "llm/test_caller.py::test_over_the_wire_cancelling_closes_the_connection",
        "llm/test_caller.py::test_the_last_who_leaves_ends_the_call_and_the_next_begins_another",
    ),
}

BAYES = {
    "a rude and a polite reply of one length look alike": (
        "reward_models/test_reading_boundaries.py::test_a_rude_and_a_polite_reply_of_one_length_are_told_apart",
    ),
    "the same input scores differently each time": (
        "reward_models/test_uncertainty.py::test_a_row_gets_the_same_numbers_in_any_batch_and_every_time",
    ),
    "untrained networks are served": ("reward_models/test_serving.py::test_without_an_active_model_there_is_no_judge",),
    "intervals that cover nothing in particular, and a calibration that changes nothing": (
        "reward_models/test_reliability.py::test_honest_intervals_cover_what_they_promise",
        "reward_models/test_reliability.py::test_intervals_that_are_too_narrow_or_too_wide_are_found_out",
    ),
    "certain far away from the data": (
        "reward_models/test_uncertainty.py::test_far_away_rows_are_more_uncertain_and_nothing_is_certain",
    ),
    "the doubt within the members is dropped": (
        "reward_models/test_uncertainty.py::test_an_ensemble_keeps_what_its_members_doubt",
    ),
}

RULES_AND_SERVER = {
    "gibberish of different words scores half": ("adversarial/test_attacks.py::test_attacks_do_not_pay",),
    "stuffing with key words pays": (
        "scoring/test_adversary.py::test_a_trick_does_not_pay",
        "adversarial/test_attacks.py::test_attacks_do_not_pay",
    ),
    "a weighted sum that is not normalised": (
        "scoring/test_compose.py::test_a_weighted_sum_is_normalised_by_its_weights",
    ),
    "a second app in a process raises": ("telemetry/test_metrics.py::test_two_apps_in_a_process_do_not_mix",),
    "series that are declared and never moved": (
        "contract/test_metrics.py::test_what_is_timed_is_what_is_counted",
        "api/test_app.py::test_metrics_count_requests_by_template",
    ),
    "a fresh server is neither healthy nor ready": ("api/test_app.py::test_a_started_app_is_alive_and_ready",),
    "bad input is 422": (
        "contract/test_bodies.py::test_what_is_no_request_is_400",
        "contract/test_fuzzed.py::test_a_fuzzer_finds_no_server_error_and_nothing_undocumented",
    ),
    "whoever was refused waits a whole window": (
        "limits/test_rate_limiter.py::test_who_waits_for_one_place_is_not_told_to_wait_a_whole_window",
        "limits/test_rate_limiter.py::test_who_waits_as_long_as_told_gets_through_again_and_again",
    ),
    "the reset is a time nobody else knows": (
        "limits/test_rate_limiter.py::test_the_reset_is_not_in_the_past_and_within_a_minute",
    ),
    "two at once get past the limiter": ("limits/test_rate_limiter.py::test_many_at_once_get_no_more_than_the_limit",),
    "many new keys wash the count of another away": (
        "limits/test_rate_limiter.py::test_a_crowd_of_other_keys_clears_nobodys_count",
    ),
}

MISTAKES = {**REWARD_MODEL, **CALIBRATION, **LEARNER, **LLM_JUDGE, **BAYES, **RULES_AND_SERVER}


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_known_mistake_has_its_tests(mistake: str) -> None:
    assert MISTAKES[mistake]
    for place in MISTAKES[mistake]:
        path, _, name = place.partition("::")
        assert name in names_in(path), place
