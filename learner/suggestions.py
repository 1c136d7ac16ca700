"""Suggests names for one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

ELSEWHERE: Mapping[str, str] = {
    "lr": "optim.learning_rate",
    "epochs": "run.updates",
    "max_steps": "run.updates",
    "num_train_epochs": "run.updates",
    "max_grad_norm": "optim.clip_norm",
    "grad_clip": "optim.clip_norm",
    "lr_scheduler_type": "optim.schedule",
    "warmup_steps": "optim.warmup_updates",
    "batch_size": "rollout.groups",
    "per_device_train_batch_size": "rollout.groups",
    "num_generations": "rollout.group_size",
    "n_samples_per_prompt": "rollout.group_size",
    "num_iterations": "optim.minibatches",
    "max_new_tokens": "model.max_tokens",
    "max_completion_length": "model.max_tokens",
    "model_name_or_path": "model.path",
    "loss_type": "algorithm.name",
    "epsilon": "algorithm.overrides.eps_low",
    "epsilon_high": "algorithm.overrides.eps_high",
    "kl_coef": "algorithm.overrides.beta",
    "kl_loss_coef": "algorithm.overrides.beta",
    "entropy_coeff": "algorithm.entropy",
    "gradient_checkpointing": "model.recompute",
    "bf16": "model.precision",
    "lora_r": "lora.rank",
    "lora_alpha": "lora.alpha",
    "target_modules": "lora.targets",
    "save_steps": "run.checkpoint_every",
    "eval_steps": "evaluation.every",
    "output_dir": "--out",
}
"""Names that other trainers give to a setting."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The advice about a name that is not known."""
    known = list(known)
    close = likely(name, known)
    hint = f"did you mean {close!r}?" if close else f"known are {', '.join(sorted(known))}"
    return f"unknown; {hint}"


def nearest_key(section: str, name: str, places: Mapping[str, Iterable[str]]) -> str:
    """The same about a key of a section; `places` are the keys of all sections.

    First what is spelt like it in its section, then what has its name in another section, or in another trainer.
    """
    own = list(places[section])
    if close := difflib.get_close_matches(name, own, n=1, cutoff=0.75):
        return f"unknown; did you mean {close[0]!r}?"
    if found := [f"{other}.{name}" for other, keys in places.items() if name in keys]:
        # Not the warm-up's, where another has it, too.
        return f"unknown; did you mean {min(found, key=lambda place: place.startswith('warmup.'))!r}?"
    if (meant := ELSEWHERE.get(name.lower())) is not None:
        return f"unknown; did you mean {meant.removeprefix(section + '.')!r}?"
    if (spelt := likely(name, own)) is not None:
        return f"unknown; did you mean {spelt!r}?"
    everywhere = {key: f"{other}.{key}" for other, keys in places.items() for key in keys}
    if (spelt := likely(name, everywhere)) is not None:
        return f"unknown; did you mean {everywhere[spelt]!r}?"
    return nearest(name, own)


def likely(name: str, known: Iterable[str]) -> str | None:
    """The one that is spelt like it, that it begins, or whose initials it is."""
    known = list(known)
    wanted = name.lower().replace("-", "_")
    if close := difflib.get_close_matches(wanted, known, n=1, cutoff=0.6):
        return close[0]
    initials = [each for each in known if "_" in each and "".join(part[0] for part in each.split("_")) == wanted]
    begun = [each for each in known if len(wanted) > 2 and (each.startswith(wanted) or wanted in each.split("_"))]
    found = initials or begun or difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    return found[0] if found else None
