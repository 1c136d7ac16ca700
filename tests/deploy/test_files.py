"""The files of deploy/ against schemas and against the code: no container engine is needed, and none has run them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from learner.cli.main import app as learner_app
from learner.presets import preset_names
from reward_server.cli.main import app
from reward_server.settings import PREFIX, Settings
from reward_server.store.engine import check_url

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
VARIABLES = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
COMMANDS = set(typer.main.get_group(app).commands)
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


def documents(manifest: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(manifest.read_text()) if document]


def pods() -> list[dict[str, Any]]:
    found = [document for manifest in MANIFESTS for document in documents(manifest)]
    return [each["spec"]["template"]["spec"] for each in found if each["kind"] in ("Deployment", "Job")]


def ours() -> list[dict[str, Any]]:
    """Services of compose that run our image."""
    return [service for service in COMPOSE["services"].values() if service["image"].startswith("labs:")]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_manifests_hold_to_the_schemas_of_kubernetes(manifest: Path) -> None:
    for document in documents(manifest):
        kubernetes_validate.validate(document, "1.29", strict=True)


def test_every_variable_in_these_files_is_a_setting() -> None:
    files = [ROOT / "docker-compose.yml", ROOT / "deploy" / "Dockerfile", *MANIFESTS]
    named = {name for file in files for name in re.findall(r"\bLABS_[A-Z_]*[A-Z]\b", file.read_text())}
    assert len(named) > 8
    assert named <= VARIABLES | {"LABS_API_KEY"}  # of clients


def test_every_command_in_these_files_exists() -> None:
    asked = {container["args"][0] for pod in pods() for container in pod["containers"]}
    asked |= {service["command"][0] for service in ours()} | set(re.findall(r'CMD \["(\w+)"\]', DOCKERFILE))
    assert {"serve", "migrate"} <= asked <= COMMANDS


def test_values_in_these_files_are_good_settings(tmp_path: Path) -> None:
    maps = [d for m in MANIFESTS for d in documents(m) if d["kind"] in ("ConfigMap", "Secret")]
    given = {name: value for each in maps for name, value in (each.get("data") or each["stringData"]).items()}
    settings = Settings(data=tmp_path, **{name.removeprefix(PREFIX).lower(): value for name, value in given.items()})
    assert settings.production
    assert settings.metrics_need_a_key
    for service in ours():
        url = re.sub(r"\$\{.*?\}", "x", service["environment"]["LABS_DATABASE_URL"])
        assert check_url(url).host == "postgres"
        assert service["environment"]["LABS_METRICS_ACCESS"] == "operator"


def test_containers_are_locked_and_limited_as_production_mode_wants() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", container["image"])
            assert {"name": "scratch", "mountPath": "/tmp"} in container["volumeMounts"]
    for service in ours():
        assert service["read_only"] is True
        assert service["mem_limit"]
        assert service["cap_drop"] == ["ALL"]


def test_probes_and_ports_are_those_of_the_server() -> None:
    [server] = [c for pod in pods() for c in pod["containers"] if c["args"] == ["serve"]]
    assert server["readinessProbe"]["httpGet"]["path"] == server["startupProbe"]["httpGet"]["path"] == "/readyz"
    assert server["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert server["ports"] == [{"name": "http", "containerPort": Settings.model_fields["port"].default}]


def test_compose_is_whole() -> None:
    """Every volume, secret and service that is named is there; what has no default stops it with a reason."""
    services = COMPOSE["services"]
    assert {"labs", "worker", "postgres", "redis", "prometheus", "grafana", "vllm", "learner"} <= set(services)
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).exists(), volume
    wanted = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()))
    assert wanted == {"PYTHON_IMAGE", "LABS_HOSTS", "POSTGRES_PASSWORD", "LABS_PEPPER", "GRAFANA_PASSWORD"}


def test_every_image_of_compose_has_a_version() -> None:
    """Of an image that others publish `latest` is another one every week."""
    images = [service["image"] for service in COMPOSE["services"].values()]
    published = [image for image in images if not image.endswith(":local")]
    assert published
    assert [image for image in published if not re.search(r":v?\d[\w.]*\}?$", image)] == []


def test_the_learner_of_compose_starts_a_run_that_exists_and_keeps_it() -> None:
    learner = COMPOSE["services"]["learner"]
    assert learner["profiles"] == ["learner"]
    stage = learner["build"]["target"]
    assert re.search(rf"^FROM base AS {stage}$", DOCKERFILE, re.MULTILINE)
    assert re.findall(r"^FROM .* AS (\w+)$", DOCKERFILE, re.MULTILINE)[-1] == "server"
    command, run, *options = [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in learner["command"]]
    known = typer.main.get_group(learner_app).commands[command]
    assert run in preset_names()
    assert set(options[::2]) <= {name for option in known.params for name in option.opts}
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert given["--url"] == "http://labs:8321"
    assert given["--out"].startswith(f"{learner['volumes'][0].split(':')[1]}/")
    assert learner["read_only"] is True


def test_the_image_is_built_from_what_was_looked_at_and_is_nobody_special() -> None:
    assert "FROM ${PYTHON_IMAGE}" in DOCKERFILE
    assert re.search(r"^ARG PYTHON_IMAGE$", DOCKERFILE, re.MULTILINE)
    assert re.search(r"^USER 10001$", DOCKERFILE, re.MULTILINE)
    for source in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / path).exists() for path in source.split())
