"""Credentials of clouds, found by their makers' own libraries, on this machine: profile files, programs, loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import asides
from asides.providers.cloud_hints import is_cloud_machine
from asides.providers.credentials import KeySource
from asides.providers.find import find_provider
from asides.transports import cloud_credentials
from asides.values.errors import AuthError, MissingKey
from asides_stage.stage import Fail, OpenStage, Say
from tests.loopback import ReceivedRequest, serving, whole_response

for _library in ("botocore", "google.auth", "azure.identity", "cryptography"):
    pytest.importorskip(_library)

NOVA = "bedrock:amazon.nova-micro-v1:0"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A home of one's own, and no machine of a cloud."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("asides.providers.cloud_hints._FIRMWARE", str(tmp_path))
    is_cloud_machine.cache_clear()
    cloud_credentials._sources.clear()  # pyright: ignore[reportPrivateUsage]
    yield tmp_path
    cloud_credentials._sources.clear()  # pyright: ignore[reportPrivateUsage]
    is_cloud_machine.cache_clear()


@contextmanager
def answering(answer: Callable[[str, str], object]) -> Generator[tuple[str, list[str]]]:
    """A server on this machine: `answer(method, path)` returns text or JSON, or None for 404."""
    seen: list[str] = []

    def respond(request: ReceivedRequest, connection: socket.socket) -> bool:
        method, path, _ = request.line.split(" ")
        seen.append(f"{method} {path}")
        found = answer(method, path)
        body = (found if isinstance(found, str) else json.dumps(found)).encode()
        kind = "text/plain" if isinstance(found, str) else "application/json"
        connection.sendall(whole_response(body, kind, "404 Not Found" if found is None else "200 OK"))
        return True

    with serving(respond) as server:
        yield f"http://127.0.0.1:{server.port}", seen


def sign_in(home: Path, credentials: str, config: str = "") -> None:
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / "credentials").write_text(credentials)
    (home / ".aws" / "config").write_text(config)


def profile(access_key: str, name: str = "default", token: str = "") -> str:
    session = f"aws_session_token = {token}\n" if token else ""
    return f"[{name}]\naws_access_key_id = {access_key}\naws_secret_access_key = {SECRET}\n{session}"


def signer(request: Any) -> str:
    """Who signed: the id of the key, and the region."""
    scope = request.headers["authorization"].split("Credential=")[1].split("/")
    return f"{scope[0]} {scope[2]}"


# --- AWS --------------------------------------------------------------------------------------------------------------


def test_a_profile_signs_in_its_region(home: Path, stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(home, profile("AKDEFAULT") + profile("AKWORK", "work", "session"), "[profile work]\nregion = eu-west-3\n")
    server = stage(Say(text="hi"))
    assert asides.ask(NOVA, "?", base_url=server.url).text == "hi"
    monkeypatch.setenv("AWS_PROFILE", "work")
    asides.ask(NOVA, "?", base_url=server.url)
    assert [signer(request) for request in server.requests] == ["AKDEFAULT us-east-1", "AKWORK eu-west-3"]
    assert server.requests[1].headers["x-amz-security-token"] == "session"


def test_async_calls_sign_too_and_many_at_once_share_one_lookup(home: Path, stage: OpenStage) -> None:
    count = home / "count"
    program = home / "program.py"
    program.write_text(
        f"import json\nopen({str(count)!r}, 'a').write('x')\n"
        f"print(json.dumps({{'Version': 1, 'AccessKeyId': 'AKPROGRAM', 'SecretAccessKey': {SECRET!r},"
        " 'SessionToken': 't', 'Expiration': '2199-01-01T00:00:00Z'}))\n"
    )
    sign_in(home, "", f"[default]\ncredential_process = {sys.executable} {program}\nregion = eu-west-1\n")
    server = stage(Say(text="hi"))

    async def run() -> list[str]:
        async with asides.AsyncClient() as client:
            replies = await asyncio.gather(*(client.ask(NOVA, "?", base_url=server.url) for _ in range(8)))
        return [reply.text for reply in replies]

    assert asyncio.run(run()) == ["hi"] * 8
    assert {signer(request) for request in server.requests} == {"AKPROGRAM eu-west-1"}
    assert count.read_text() == "x"


def test_a_slow_program_does_not_block_the_event_loop(home: Path, stage: OpenStage) -> None:
    go = home / "go"
    program = home / "program.py"
    program.write_text(
        f"import json, os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        f"print(json.dumps({{'Version': 1, 'AccessKeyId': 'AKSLOW', 'SecretAccessKey': {SECRET!r}}}))\n"
    )
    sign_in(home, "", f"[default]\ncredential_process = {sys.executable} {program}\n")
    server = stage(Say(text="hi"))

    async def run() -> str:
        async with asides.AsyncClient() as client:
            asking = asyncio.create_task(client.ask(NOVA, "?", base_url=server.url))
            await asyncio.sleep(0.1)
            go.touch()  # The program ends only because the loop goes on.
            return (await asking).text

    assert asyncio.run(run()) == "hi"


def test_a_program_that_fails_is_reported_without_its_output(home: Path) -> None:
    program = home / "program.py"
    program.write_text(f"import sys\nsys.exit('leaked {SECRET}')\n")
    sign_in(home, "", f"[default]\ncredential_process = {sys.executable} {program}\nregion = eu-west-1\n")
    with pytest.raises(MissingKey, match="botocore raised CredentialRetrievalError") as caught:
        asides.ask(NOVA, "?")
    assert SECRET not in str(caught.value)
    assert "aws sso login" in str(caught.value)


def test_the_metadata_server_of_a_machine_is_asked_when_it_is_named(
    stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": "AKROLE",
        "SecretAccessKey": SECRET,
        "Token": "session",
        "LastUpdated": "2026-01-01T00:00:00Z",
        "Expiration": "2199-01-01T00:00:00Z",
    }

    def answer(method: str, path: str) -> object:
        if method == "PUT":
            return "imds-token"
        return role if path.endswith("/my-role") else "my-role"

    server = stage(Say(text="hi"))
    with answering(answer) as (url, seen):
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url)
        for _ in range(2):
            asides.ask(NOVA, "?", base_url=server.url)
    assert {signer(request) for request in server.requests} == {"AKROLE us-east-1"}
    assert seen[0] == "PUT /latest/api/token"
    assert len(seen) == 3  # The second call needed none.


def test_a_container_has_credentials_too(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"AccessKeyId": "AKTASK", "SecretAccessKey": SECRET, "Token": "t", "Expiration": "2199-01-01T00:00:00Z"}
    server = stage(Say(text="hi"))
    with answering(lambda _method, _path: found) as (url, _):
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/credentials")
        asides.ask(NOVA, "?", base_url=server.url)
    assert signer(server.requests[0]) == "AKTASK us-east-1"


def test_a_laptop_with_a_profile_and_no_credentials_does_not_wait(home: Path) -> None:
    """The metadata server is not looked for: any connection to it would fail the test."""
    sign_in(home, "", "[default]\nregion = eu-west-1\n")
    began = time.monotonic()
    with pytest.raises(MissingKey, match=r"botocore finds no credentials.*AWS_BEARER_TOKEN_BEDROCK.*aws configure"):
        asides.ask(NOVA, "?")
    assert time.monotonic() - began < 5


def test_where_no_key_is_needed_none_is_sent(home: Path, stage: OpenStage) -> None:
    sign_in(home, "", "[default]\nregion = eu-west-1\n")
    server = stage(Say(text="hi"))
    asides.ask(NOVA, "?", base_url=server.url)
    assert "authorization" not in server.requests[0].headers


def test_a_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(MissingKey, match=r"ProfileNotFound.*nobody"):
        asides.ask(NOVA, "?")


def test_expired_credentials_are_looked_up_anew(home: Path, stage: OpenStage) -> None:
    sign_in(home, profile("AKOLD"))
    body = '{"__type": "ExpiredTokenException", "message": "The security token included in the request is expired"}'

    asked: list[object] = []

    def play(request: object) -> Fail | Say:
        asked.append(request)
        if len(asked) == 1:
            sign_in(home, profile("AKNEW"))
            return Fail(status=403, body=body, headers={"x-amzn-errortype": "ExpiredTokenException"})
        return Say(text="hi")

    server = stage(play)
    assert asides.ask(NOVA, "?", base_url=server.url, retries=0).text == "hi"
    assert [signer(request).split()[0] for request in server.requests] == ["AKOLD", "AKNEW"]


def test_credentials_that_stay_the_same_are_not_refused_twice(home: Path, stage: OpenStage) -> None:
    sign_in(home, profile("AKOLD"))
    server = stage(Fail(status=401, message=f"no {SECRET}"))
    with pytest.raises(AuthError) as caught:
        asides.ask(NOVA, "?", base_url=server.url)
    assert len(server.requests) == 1
    assert SECRET not in str(caught.value) + repr(vars(caught.value))


def test_explain_asks_no_library(home: Path) -> None:
    sign_in(home, profile("AKDEFAULT"), "[default]\nregion = eu-west-1\n")
    explained = asides.explain(NOVA, "?")
    assert explained.headers["Authorization"] == "AWS4-HMAC-SHA256 ***"
    assert explained.url.startswith("https://bedrock-runtime.eu-west-1.amazonaws.com/")
    assert cloud_credentials._sources == {}  # pyright: ignore[reportPrivateUsage]


# --- Google -----------------------------------------------------------------------------------------------------------


def write_service_account(home: Path, token_uri: str) -> Path:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    path = home / "account.json"
    account = {
        "type": "service_account",
        "project_id": "mine",
        "private_key_id": "1",
        "private_key": pem,
        "client_email": "me@mine.iam.example",
        "client_id": "1",
        "token_uri": token_uri,
    }
    path.write_text(json.dumps(account))
    return path


def test_application_default_credentials_of_google_are_sent_and_renewed(
    home: Path, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(1, 9))
    lives = [3600, 3600]

    def answer(_method: str, _path: str) -> object:
        return {"access_token": f"ya29.token-{next(numbers)}", "expires_in": lives[0], "token_type": "Bearer"}

    server = stage(Say(text="hi"))
    with answering(answer) as (url, seen):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_service_account(home, f"{url}/token")))
        for _ in range(2):
            assert asides.ask("vertex:gemini-3-pro", "?", base_url=server.url).text == "hi"
        asyncio.run(ask_async("vertex:gemini-3-pro", server.url))
        assert seen == ["POST /token"]
        cloud_credentials._sources.clear()  # pyright: ignore[reportPrivateUsage]
        lives[0] = 1  # The next token is stale at once, and the library renews it.
        for _ in range(2):
            asides.ask("vertex:gemini-3-pro", "?", base_url=server.url)
    tokens = [request.headers["authorization"].rpartition("-")[2] for request in server.requests]
    assert tokens == ["1", "1", "1", "2", "3"]


async def ask_async(model: str, url: str) -> str:
    async with asides.AsyncClient() as client:
        return (await client.ask(model, "?", base_url=url)).text


def test_a_refused_token_is_fetched_anew(home: Path, stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(1, 9))

    def answer(_method: str, _path: str) -> object:
        return {"access_token": f"ya29.secret-token-{next(numbers)}", "expires_in": 3600, "token_type": "Bearer"}

    server = stage(Fail(status=401, message="bad ya29.secret-token-1"), Say(text="hi"), Fail(status=401, message="no"))
    with answering(answer) as (url, _):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_service_account(home, f"{url}/token")))
        assert asides.ask("vertex:gemini-3-pro", "?", base_url=server.url).text == "hi"
        with pytest.raises(AuthError) as caught:
            asides.ask("vertex:gemini-3-pro", "?", base_url=server.url)
    assert "secret-token" not in str(caught.value)
    assert [request.headers["authorization"][-1] for request in server.requests] == ["1", "2", "2", "3"]


@pytest.mark.parametrize("content", [None, "broken {", '{"type": "strange"}'])
def test_a_file_of_google_that_does_not_read_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = home / "adc.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "mine")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    with pytest.raises(MissingKey, match=r"google-auth says: DefaultCredentialsError.*adc\.json.*gcloud auth"):
        asides.ask("vertex:gemini-3-pro", "?")


def test_the_credentials_of_a_person_are_read_from_the_folder_of_gcloud(
    home: Path, stage: OpenStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their endpoint is a constant of the library, and is moved to this machine. No program runs: that takes long."""
    monkeypatch.setattr("subprocess.check_output", None)
    folder = home / "gcloud"
    folder.mkdir()
    person = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    (folder / "application_default_credentials.json").write_text(json.dumps({**person, "quota_project_id": "mine"}))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "mine")
    import google.oauth2.credentials

    with answering(lambda _method, _path: {"access_token": "ya29.person", "expires_in": 3600}) as (url, seen):
        endpoint = "_GOOGLE_OAUTH2_TOKEN_ENDPOINT"
        monkeypatch.setattr(google.oauth2.credentials, endpoint, f"{url}/token")
        server = stage(Say(text="hi"))
        asides.ask("vertex:gemini-3-pro", "?", base_url=server.url)
    assert seen == ["POST /token"]
    assert server.requests[0].headers["authorization"] == "Bearer ya29.person"


# --- Azure ------------------------------------------------------------------------------------------------------------


def test_a_managed_identity_of_azure_is_a_bearer(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(_method: str, path: str) -> object:
        assert "resource=https://cognitiveservices.azure.com" in unquote(path)
        expires = int(time.time()) + 86_400
        return {"access_token": "eyJ0.managed.x", "expires_on": str(expires), "token_type": "Bearer", "resource": "r"}

    server = stage(Say(text="hi"))
    with answering(answer) as (url, seen):
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "header")
        assert asides.ask("azure:gpt-4o", "?", base_url=server.url).text == "hi"
        assert asyncio.run(ask_async("azure:gpt-4o", server.url)) == "hi"
    assert len(seen) == 1
    for request in server.requests:
        assert request.headers["authorization"] == "Bearer eyJ0.managed.x"
        assert "api-key" not in request.headers


def test_an_azure_identity_that_fails_says_why_and_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(lambda _method, _path: None) as (url, _):
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{url}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "header")
        monkeypatch.setenv("PATH", "")
        with pytest.raises(MissingKey, match=r"azure-identity says: .*az login"):
            asides.ask("azure:gpt-4o", "?", base_url="https://mine.openai.azure.com")
    assert capsys.readouterr().err == ""


def test_a_function_may_return_a_token_of_azure(stage: OpenStage) -> None:
    server = stage(Say(text="hi"))
    asides.ask("azure:gpt-4o", "?", base_url=server.url, api_key=lambda: "eyJ0eXAi.eyJhdWQi.c2ln")
    assert server.requests[0].headers["authorization"] == "Bearer eyJ0eXAi.eyJhdWQi.c2ln"
    assert "api-key" not in server.requests[0].headers


# --- without the libraries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "library", "says"),
    [
        ("bedrock", "botocore", r"botocore, .*is not installed.*pip install 'asides\[aws\]'"),
        ("vertex", "google.auth", r"google-auth, .*pip install 'asides\[google\]'"),
        ("azure", "azure.identity", r"azure-identity, .*pip install 'asides\[azure\]'"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    name: str, library: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [module for module in sys.modules if module == library or module.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, library, None)
    row = find_provider(name)
    source = KeySource(row, cloud="aws" if row.signing == "aws" else row.cloud, base_url="https://host")
    with pytest.raises(MissingKey, match=says):
        cloud_credentials.fetch_credentials(source)
    source.is_required = False
    assert cloud_credentials.fetch_credentials(source) is None
