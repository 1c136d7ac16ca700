"""Every setting of the server, in one frozen object read from `LABS_…` variables and the command line.

Secrets are `SecretStr` and show in no repr, log or error. `load_settings` reports everything that is wrong
in one line each, without repeating the values. Limits that the public contract fixes are not settings.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from reward_server.errors import ConfigurationError

PREFIX = "LABS_"
DEFAULT_PORT = 8321
MIN_PEPPER_CHARACTERS = 32

BATCH_DEADLINES = 5
"""A batch may take as long as so many turns or evaluations."""

Seconds = Annotated[float, Field(gt=0.0, le=3600.0, allow_inf_nan=False)]


def _default_data() -> Path:
    return Path("~/.local/share/labs")


class Settings(BaseSettings):
    """Settings of this server."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    hosts: str = Field(
        default="",
        max_length=2000,
        description="Names that the server goes by, comma-separated, or *; default: localhost on loopback, else any.",
    )
    production: bool = Field(default=False, description="Refuse to start with weak settings.")
    console: Literal["on", "off"] = Field(default="on", description="Whether the web console is served at /console.")
    data: Path = Field(default_factory=_default_data, description="Directory for everything the server keeps.")
    cache: Path | None = Field(
        default=None, description="Directory for what can be made again; default: inside `data`."
    )
    database_url: SecretStr | None = Field(
        default=None, description="Database: postgresql://…, or another SQLite file; default: inside `data`."
    )
    redis_url: SecretStr | None = Field(
        default=None, description="Redis that replicas share, such as redis://127.0.0.1:6379/0; default: none."
    )
    pepper: SecretStr | None = Field(
        default=None, description="Secret that API keys are hashed with; default: a file in `data`."
    )
    encoder: str = Field(
        default="all-MiniLM-L6-v2", min_length=1, description="Text encoder: the packaged one, a folder or a hub name."
    )
    scenarios: Path | None = Field(default=None, description="Collections to serve instead of the packaged ones.")

    reader: Literal["local", "decisions", "cascade"] = Field(
        default="local",
        description="Who reads agent turns: the packaged model, the decision model, or that where unsure.",
    )
    reader_failure: Literal["local", "fail"] = Field(
        default="local", description="A turn that the decision model did not read: read locally, or an error."
    )
    judges: Literal["llm", "decisions"] = Field(
        default="llm", description="Who decides `judge` criteria and breaks ties of /compare: LLM or decision model."
    )
    decisions: Literal["none", "systemone", "openai", "chat", "local"] = Field(
        default="none", description="How the decision model is asked; `chat` is any OpenAI-compatible chat server."
    )
    decisions_model: str | None = Field(default=None, min_length=1, description="The decision model; has no default.")
    decisions_url: str | None = Field(
        default=None, min_length=1, description="URL of its server; default: OpenAI's, for openai and chat."
    )
    decisions_api_key: SecretStr | None = Field(
        default=None, description="Key of that server; default: OPENAI_API_KEY where no URL is given."
    )
    decisions_threshold: float = Field(
        default=0.5, gt=0.0, lt=1.0, description="Probability from which a criterion is met."
    )
    reader_commitments: Literal["once", "twice"] = Field(
        default="twice",
        description="How often the local reader reads what may be a commitment that costs the agent; once: a cap "
        "needs words close to the examples.",
    )
    reader_precision: Literal["fp32", "int8"] = Field(
        default="fp32",
        description="Numbers of the packaged reader; int8 is faster, but rewards may differ between processors.",
    )

    llm_provider: Literal["none", "anthropic", "openai", "vllm"] = Field(
        default="none", description="Who is asked by LLM judges; `vllm` is any OpenAI-compatible URL."
    )
    llm_model: str | None = Field(default=None, min_length=1, description="Model of the LLM judges; has no default.")
    llm_base_url: str | None = Field(default=None, min_length=1, description="URL of the provider; needed for vllm.")
    llm_api_key: SecretStr | None = Field(
        default=None, description="Key of the provider; default: ANTHROPIC_API_KEY or OPENAI_API_KEY."
    )
    llm_samples: int = Field(default=1, ge=1, le=16, description="How often an LLM judge is asked; gives a spread.")
    llm_logprobs: bool = Field(
        default=True, description="Weigh verdicts by log-probabilities; false for a model of openai or vllm without."
    )
    llm_deadline_s: Seconds = Field(default=30.0, description="Time for one question with all its retries.")
    llm_retries: int = Field(default=2, ge=0, le=10, description="Further attempts after one that failed in passing.")
    llm_concurrency: int = Field(default=16, ge=1, le=4096, description="Questions on their way at once.")
    llm_daily_tokens: int | None = Field(default=None, ge=1, description="Tokens a lab may use a day (UTC).")
    llm_daily_usd: float | None = Field(
        default=None, gt=0.0, allow_inf_nan=False, description="Money a lab may use a day (UTC); needs prices."
    )
    llm_prices: str | None = Field(
        default=None,
        pattern=r"^\d+(\.\d+)?/\d+(\.\d+)?$",
        description="Prices of input and output, USD per million tokens, such as 3/15; default: list prices.",
    )
    persona_voice: Literal["local", "llm"] = Field(
        default="local",
        description="Who words what a persona says: the engine, or a language model under the engine's guard.",
    )
    voice_failure: Literal["local", "fail"] = Field(
        default="local", description="A line that the voice's model did not give: the engine's own, or an error."
    )
    voice_provider: Literal["anthropic", "openai", "vllm"] = Field(
        default="vllm", description="Who is asked for lines if LABS_VOICE_MODEL is set."
    )
    voice_model: str | None = Field(
        default=None, min_length=1, description="Model of the voice; default: that of LABS_LLM_MODEL."
    )
    voice_base_url: str | None = Field(default=None, min_length=1, description="URL of that model's provider.")
    voice_api_key: SecretStr | None = Field(default=None, description="Key of that provider.")

    judge_plugins: str = Field(
        default="", max_length=2000, description="Judge plug-ins to load: names of entry points, comma-separated."
    )

    classifier: str | None = Field(
        default=None,
        min_length=1,
        description="Sequence classifier that judges conversations: a folder, or a URL that ends in /classify or "
        "/pooling.",
    )
    classifier_model: str | None = Field(
        default=None, min_length=1, description="The name under which the server at that URL has it."
    )
    classifier_api_key: SecretStr | None = Field(default=None, description="Key of that server, if it wants one.")
    classifier_centre: float = Field(
        default=0.0, allow_inf_nan=False, description="Output of the classifier that becomes the value 0.5."
    )
    classifier_scale: float = Field(
        default=1.0, gt=0.0, allow_inf_nan=False, description="By what outputs are divided before the sigmoid."
    )

    max_concurrency: int = Field(default=256, ge=1, le=100_000, description="Requests in work before 503.")
    scoring_threads: int = Field(default=2, ge=1, le=256, description="Threads that score conversations.")
    request_deadline_s: Seconds = Field(
        default=60.0,
        description="Time to answer a turn or an evaluation, also for the endpoint of an agent; a batch has five times "
        "as long.",
    )
    job_workers: int = Field(
        default=1, ge=0, le=64, description="Workers for jobs in the server's process; 0 leaves all to `labs worker`."
    )
    training_runs: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether operators' keys may start runs of the learner on this machine; `auto` is on, but off in "
        "production.",
    )
    training_run_workers: int = Field(
        default=1, ge=0, le=16, description="Runs of the learner at a time in this process; 0 for none."
    )
    training_run_deadline_s: float = Field(
        default=86_400.0, ge=1.0, le=2_592_000.0, allow_inf_nan=False, description="Time for an attempt at such a run."
    )
    training_models: Path | None = Field(
        default=None, description="Folder with the models that runs may start from; default: none but tiny ones."
    )
    training_url: str | None = Field(
        default=None,
        min_length=1,
        description="Address of this API for the learners of runs; default: the server's own. `labs worker` needs it.",
    )
    step_rewards: Literal["last", "each"] = Field(
        default="last",
        description="Which steps of OpenEnv and calls of ORS have a reward, that of the conversation so far, and its "
        "dimensions; `each` is wrong for clients that add up steps.",
    )
    path_prefix: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        description="Path in front of all others behind a proxy: `/labs`.",
    )
    drain_s: Seconds = Field(default=10.0, description="Time for requests in work when the server is stopped.")

    jwt_issuer: str | None = Field(default=None, min_length=1, description="Whose JSON Web Tokens are taken (`iss`).")
    jwt_audience: str | None = Field(default=None, min_length=1, description="For whom they have to be (`aud`).")
    jwt_key: SecretStr | None = Field(
        default=None, description="What verifies them: a PEM public key, or a secret of 32 characters or more."
    )

    private_addresses: bool = Field(
        default=False,
        description="Whether agents and webhooks may be at http URLs and at private and loopback addresses.",
    )
    metrics_access: Literal["auto", "open", "operator"] = Field(
        default="auto",
        description="Who may read /metrics; `auto` is everybody on loopback, else operators' keys. While no key exists "
        "at all (on loopback alone), everybody counts as an operator, whatever is set here.",
    )
    alert_slack_url: SecretStr | None = Field(default=None, description="Slack webhook that alerts are sent to.")
    alert_webhook_url: SecretStr | None = Field(default=None, description="Any other webhook that alerts are sent to.")
    alerts: Path | None = Field(
        default=None, description="YAML file with alert thresholds and rules of your own; read again on SIGHUP."
    )
    otlp_endpoint: str | None = Field(
        default=None, min_length=1, description="Where OpenTelemetry traces are sent, over HTTP; default: nowhere."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least log level.")

    @field_validator("data", "cache", "scenarios", "training_models", "alerts")
    @classmethod
    def _expand_home(cls, path: Path | None) -> Path | None:
        try:
            return None if path is None else path.expanduser()
        except RuntimeError:
            raise ValueError("the home directory is not known; give a full path") from None

    @field_validator("training_models")
    @classmethod
    def _is_folder(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_dir():
            raise ValueError("there is no such directory")
        return path

    @field_validator("hosts")
    @classmethod
    def _are_host_names(cls, hosts: str) -> str:
        for name in filter(None, map(str.strip, hosts.split(","))):
            # An IPv6 address has more than one colon.
            if name != "*" and (set(name) & set("/* ") or name.count(":") == 1):
                raise ValueError(f"{name!r} is not a host name; without scheme, port and path, as in labs.example.com")
        return hosts

    @field_validator("training_url", "otlp_endpoint")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return url

    @field_validator("pepper")
    @classmethod
    def _long_enough(cls, pepper: SecretStr | None) -> SecretStr | None:
        if pepper is not None and len(pepper.get_secret_value()) < MIN_PEPPER_CHARACTERS:
            raise ValueError(f"must have at least {MIN_PEPPER_CHARACTERS} characters")
        return pepper

    @field_validator("database_url")
    @classmethod
    def _usable_database(cls, url: SecretStr | None) -> SecretStr | None:
        # Imported here so that `labs --help` does not load the database library.
        from reward_server.store.engine import check_url

        if url is not None:
            try:
                check_url(url.get_secret_value())
            except ConfigurationError as error:
                raise ValueError(error.message) from None
        return url

    @field_validator("redis_url")
    @classmethod
    def _usable_redis(cls, url: SecretStr | None) -> SecretStr | None:
        from reward_server.shared_state.redis_link import check_redis_url

        if url is not None:
            try:
                check_redis_url(url.get_secret_value())
            except ConfigurationError as error:
                raise ValueError(error.message) from None
        return url

    @field_validator("alert_slack_url", "alert_webhook_url")
    @classmethod
    def _usable_webhook(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return url

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.data.exists() and not self.data.is_dir():
            raise ValueError("data: is not a directory")
        if self.scenarios is not None and not self.scenarios.is_dir():
            raise ValueError("scenarios: there is no such directory")
        if self.llm_provider != "none" and self.llm_model is None:
            raise ValueError(f"llm_model: must name a model of {self.llm_provider}")
        self._decisions_fit()
        self._voice_fits()
        if self.llm_provider == "vllm" and self.llm_base_url is None:
            raise ValueError("llm_base_url: must be given for vllm, such as http://127.0.0.1:8000/v1")
        if len({self.jwt_issuer is None, self.jwt_audience is None, self.jwt_key is None}) > 1:
            raise ValueError("jwt_issuer: goes with LABS_JWT_AUDIENCE and LABS_JWT_KEY; set all three or none")
        if self.llm_daily_usd is not None and not self._prices_known():
            needs = "needs LABS_LLM_PRICES, such as 3/15"
            raise ValueError(f"llm_daily_usd: {needs}, as the list prices of {self.llm_model} are not known")
        return self

    def _prices_known(self) -> bool:
        if self.llm_prices is not None:
            return True
        from reward_server.prices import is_listed

        return is_listed(self.llm_provider, self.llm_model, self.llm_base_url)

    def _voice_fits(self) -> None:
        if self.persona_voice == "local":
            return
        if self.voice_model is None and self.llm_provider == "none":
            raise ValueError("voice_model: must name a model if LABS_PERSONA_VOICE is llm; or set LABS_LLM_PROVIDER")
        if self.voice_model is not None and self.voice_provider == "vllm" and self.voice_base_url is None:
            raise ValueError("voice_base_url: must be given for vllm, such as http://127.0.0.1:8000/v1")

    @property
    def for_voice(self) -> Settings:
        """The same with the voice's own model in place of the judges'."""
        return self.model_copy(
            update={
                "llm_provider": self.voice_provider,
                "llm_model": self.voice_model,
                "llm_base_url": self.voice_base_url,
                "llm_api_key": self.voice_api_key,
            }
        )

    def _decisions_fit(self) -> None:
        wanted = [(name, value) for name, value in (("READER", self.reader), ("JUDGES", self.judges)) if value != "llm"]
        for name, value in wanted:
            if value in ("decisions", "cascade") and self.decisions == "none":
                raise ValueError(f"decisions: must be set if {PREFIX}{name} is {value}")
        if self.decisions in ("systemone", "openai", "chat") and self.decisions_model is None:
            raise ValueError(f"decisions_model: must name a model for {self.decisions}")
        if self.decisions == "systemone" and self.decisions_url is None:
            raise ValueError("decisions_url: must be given for systemone, such as http://127.0.0.1:8080")

    @property
    def asked_decision_model(self) -> str | None:
        """The decision model, if the reader or the judges ask it."""
        return self.decisions_model if self.reader != "local" or self.judges == "decisions" else None

    @property
    def llm_usd_per_mtok(self) -> tuple[float, float] | None:
        """The operator's prices of input and output."""
        if self.llm_prices is None:
            return None
        of_input, of_output = self.llm_prices.split("/")
        return float(of_input), float(of_output)

    @property
    def batch_deadline_s(self) -> float:
        """Time to answer a batch."""
        return BATCH_DEADLINES * self.request_deadline_s

    @property
    def database(self) -> str:
        """The database URL to open. May hold a password: never log it."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        from reward_server.store.engine import sqlite_url

        return sqlite_url(self.sqlite)

    @property
    def sqlite(self) -> Path:
        """The database file of a server that is given no other database."""
        return self.data / "labs.sqlite"

    @property
    def anchors(self) -> Path:
        """Directory of the vectors of authored texts."""
        return (self.cache or self.data / "cache") / "anchors"

    @property
    def libraries(self) -> Path:
        """Directory of compiled scenarios."""
        return (self.cache or self.data / "cache") / "scenarios"

    @property
    def learning(self) -> Path:
        """Directory of what trainings of jobs have begun, by lab and job.

        Not in the cache: servers with databases of their own may share that, and would forget each other's.
        """
        return self.data / "trainings"

    @property
    def runs(self) -> Path:
        """Directory of the runs of the learner, by lab: their checkpoints, metrics and logs."""
        return self.data / "training-runs"

    @property
    def trains(self) -> bool:
        """True if this server starts runs of the learner."""
        return self.training_runs == "on" or (self.training_runs == "auto" and not self.production)

    @property
    def own_url(self) -> str:
        """The URL at which a process on this machine finds the API."""
        if self.training_url is not None:
            return self.training_url.rstrip("/")
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 (compared, not bound)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def reward_models(self) -> Path:
        """Directory of the learned reward models."""
        return self.data / "reward-models"

    @property
    def calibrations(self) -> Path:
        """Directory of the calibrations."""
        return self.data / "calibrations"

    def folders_of(self, lab_id: str) -> tuple[Path, ...]:
        """The folders of files that are one lab's alone; none for what is no lab's id."""
        return (*self.learned_of(lab_id), *_of_lab(lab_id, self.learning))

    def learned_of(self, lab_id: str) -> tuple[Path, ...]:
        """The same of what was made for the lab to keep: its reward models, calibrations and training runs."""
        return _of_lab(lab_id, self.reward_models, self.calibrations, self.runs)

    @property
    def plugin_names(self) -> tuple[str, ...]:
        """The judge plug-ins to load; only what is named here is ever imported."""
        return tuple(name for part in self.judge_plugins.split(",") if (name := part.strip()))

    @property
    def host_names(self) -> frozenset[str]:
        """The names that `Host` may say; addresses always may. `*` is anything."""
        if names := frozenset(name for part in self.hosts.split(",") if (name := part.strip().lower())):
            return names
        return frozenset(("localhost", self.host.lower())) if self.is_loopback else frozenset("*")

    @property
    def metrics_need_a_key(self) -> bool:
        """True if /metrics is for operators' keys alone: its counts tell how much a scenario asks."""
        return self.metrics_access == "operator" or (self.metrics_access == "auto" and not self.is_loopback)

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def _of_lab(lab_id: str, *folders: Path) -> tuple[Path, ...]:
    """The lab's parts of folders."""
    from reward_server.ownership import of_lab

    found = (of_lab(folder, lab_id) for folder in folders)
    return tuple(folder for folder in found if folder is not None)


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Settings from the environment; `overrides` (a flag that was not given is None) win."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise ConfigurationError("; ".join(_problem(found["loc"], found["msg"]) for found in error.errors())) from None
    except SettingsError:
        raise ConfigurationError(f"A {PREFIX}… variable cannot be read.") from None


def _problem(location: tuple[int | str, ...], message: str) -> str:
    """`LABS_PORT: …`, without a full stop, as others may follow; a cross-check names its field itself."""
    text = message.removeprefix("Value error, ").removesuffix(".")
    name = str(location[0]) if location else text.split(":", 1)[0]
    text = text if location else text.split(":", 1)[1].strip()
    return f"{PREFIX}{name.upper()}: {text[:1].lower()}{text[1:]}"
