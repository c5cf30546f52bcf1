"""Whether a machine has credentials of a cloud: known from variables and files, quickly and without network."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.providers import cloud_hints
from asides.providers.cloud_hints import can_receive_token, has_cloud_hint, is_cloud_machine, read_aws_region
from asides.providers.credentials import KeySource, find_key
from asides.providers.find import find_provider, find_target
from asides.providers.key_file import locate_key
from asides.providers.quirks import Cloud
from asides.values.errors import ConfigError, MissingKey

AZURE = "https://mine.openai.azure.com/openai/v1"
VERTEX = "https://europe-west1-aiplatform.googleapis.com/v1beta1"
BEDROCK = "https://bedrock-runtime.eu-central-1.amazonaws.com"


@pytest.fixture
def firmware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "firmware"
    folder.mkdir()
    monkeypatch.setattr(cloud_hints, "_FIRMWARE", str(folder))
    is_cloud_machine.cache_clear()
    yield folder
    is_cloud_machine.cache_clear()


@pytest.mark.parametrize(
    ("cloud", "name", "file"),
    [
        ("aws", "AWS_PROFILE", ".aws/credentials"),
        ("aws", "AWS_CONTAINER_CREDENTIALS_FULL_URI", ".aws/config"),
        ("google-cloud", "GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json"),
        ("azure-ad", "IDENTITY_ENDPOINT", ".azure/azureProfile.json"),
    ],
)
@pytest.mark.usefixtures("firmware")
def test_a_variable_or_a_file_is_a_hint(cloud: Cloud, name: str, file: str, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert not has_cloud_hint(cloud, home)
    assert has_cloud_hint(cloud, {name: "x"})
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("")
    assert has_cloud_hint(cloud, home)
    assert has_cloud_hint(cloud, {"USERPROFILE": str(tmp_path)})


@pytest.mark.usefixtures("firmware")
def test_files_of_the_current_folder_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("[default]\nregion = eu-west-1\n")
    monkeypatch.chdir(tmp_path)
    for nowhere in ({}, {"HOME": "."}, {"HOME": ""}):
        assert not has_cloud_hint("aws", nowhere)
        assert read_aws_region(nowhere) is None


@pytest.mark.parametrize(
    ("cloud", "name", "says"),
    [
        ("aws", "sys_vendor", "Amazon EC2"),
        ("google-cloud", "product_name", "Google Compute Engine"),
        ("azure-ad", "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"),
    ],
)
def test_a_machine_of_the_cloud_is_a_hint(cloud: Cloud, name: str, says: str, firmware: Path) -> None:
    assert not has_cloud_hint(cloud, {})
    (firmware / name).write_text(f"{says}\n")
    is_cloud_machine.cache_clear()
    assert has_cloud_hint(cloud, {})
    if cloud != "azure-ad":
        assert not has_cloud_hint(cloud, {"AWS_EC2_METADATA_DISABLED": "true", "NO_GCE_CHECK": "True"})


@pytest.mark.usefixtures("firmware")
def test_folders_that_variables_name_are_looked_into(tmp_path: Path) -> None:
    for cloud, variable, name in (
        ("google-cloud", "CLOUDSDK_CONFIG", "application_default_credentials.json"),
        ("azure-ad", "AZURE_CONFIG_DIR", "azureProfile.json"),
        ("google-cloud", "APPDATA", "gcloud/application_default_credentials.json"),
    ):
        folder = tmp_path / variable
        environ = {variable: str(folder)}
        assert not has_cloud_hint(cloud, environ)  # type: ignore[arg-type]
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("{}")
        assert has_cloud_hint(cloud, environ)  # type: ignore[arg-type]


@pytest.mark.usefixtures("firmware")
def test_without_a_hint_a_missing_key_is_known_at_once(tmp_path: Path) -> None:
    # No library of a cloud is loaded: it could wait for a metadata server.
    loaded = {*sys.modules}
    for name, address in (("bedrock", BEDROCK), ("vertex", VERTEX), ("azure", AZURE)):
        with pytest.raises(MissingKey, match=r"extra asides\[(aws|google|azure)\]"):
            find_key(find_provider(name), environ={"HOME": str(tmp_path)}, base_url=address)
    assert not {module.partition(".")[0] for module in {*sys.modules} - loaded} & {"botocore", "google", "azure"}


@pytest.mark.usefixtures("firmware")
def test_with_a_hint_the_cloud_is_the_source_below_all_others(tmp_path: Path) -> None:
    bedrock = find_provider("bedrock")
    hinted = {"HOME": str(tmp_path), "AWS_PROFILE": "work"}
    source = find_key(bedrock, environ=hinted, base_url=BEDROCK)
    assert isinstance(source, KeySource)
    assert (source.cloud, source.signs, source.is_required) == ("aws", True, True)
    assert locate_key(bedrock, hinted) == "aws credentials"
    assert locate_key(bedrock, hinted, clouds=False) is None
    assert not isinstance(find_key(bedrock, "given", hinted, base_url=BEDROCK), KeySource)
    bearer = {**hinted, "AWS_BEARER_TOKEN_BEDROCK": "x"}
    assert not isinstance(find_key(bedrock, environ=bearer, base_url=BEDROCK), KeySource)
    at_home = find_key(bedrock, environ=hinted, base_url="http://127.0.0.1:9")
    assert isinstance(at_home, KeySource)
    assert not at_home.is_required


@pytest.mark.usefixtures("firmware")
def test_a_token_goes_to_the_clouds_own_hosts_and_to_this_machine_alone(tmp_path: Path) -> None:
    hinted = {"HOME": str(tmp_path), "AZURE_CLIENT_ID": "x", "GOOGLE_APPLICATION_CREDENTIALS": "x", "AWS_PROFILE": "x"}
    for name, own in (("azure", AZURE), ("vertex", VERTEX), ("vertex-anthropic", VERTEX)):
        row = find_provider(name)
        assert isinstance(find_key(row, environ=hinted, base_url=own), KeySource)
        assert isinstance(find_key(row, environ=hinted, base_url="http://localhost:1"), KeySource)
        for foreign in ("https://evil.example", own.replace("https", "http"), own.replace(".com", ".com.evil.example")):
            with pytest.raises(MissingKey):
                find_key(row, environ=hinted, base_url=foreign)
    # A signature is good for one request to one host.
    assert can_receive_token(find_provider("bedrock"), "aws", "https://vpce.example")


def test_a_token_of_azure_ad_is_a_bearer_and_a_key_is_not() -> None:
    azure = find_provider("azure")
    token = find_key(azure, "eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl")
    assert token is not None
    assert token.header == ("Authorization", "Bearer ")
    key = find_key(azure, "0123456789abcdef0123456789abcdef")
    assert key is not None
    assert key.header is None
    elsewhere = find_key(find_provider("google"), "eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl")
    assert elsewhere is not None
    assert elsewhere.header is None


CONFIG = """
# region = nowhere-1
[default]
region=eu-west-1
[profile work]
output = json
region = ap-south-1   # close
sso_region = us-east-1
[profile bare]
output = json
"""


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({}, "eu-west-1"),
        ({"AWS_PROFILE": "work"}, "ap-south-1"),
        ({"AWS_DEFAULT_PROFILE": "work"}, "ap-south-1"),
        ({"AWS_PROFILE": "bare"}, None),
        ({"AWS_PROFILE": "other"}, None),
    ],
)
def test_the_region_of_the_profile_completes_the_address(
    environ: dict[str, str], region: str | None, tmp_path: Path
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    environ = {"HOME": str(tmp_path), **environ}
    assert read_aws_region(environ) == region
    if region is None:
        with pytest.raises(ConfigError, match="AWS_REGION"):
            find_target("bedrock:m", environ=environ)
    else:
        found = find_target("bedrock:m", environ=environ)
        assert found.base_url == f"https://bedrock-runtime.{region}.amazonaws.com"
    given = find_target("bedrock:m", environ={**environ, "AWS_REGION": "us-west-2"})
    assert given.base_url == "https://bedrock-runtime.us-west-2.amazonaws.com"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("[default]\nregion = sa-east-1\n[profile work]\nregion = sa-east-1\n")
    assert read_aws_region({**environ, "AWS_CONFIG_FILE": str(elsewhere), "AWS_PROFILE": "work"}) == "sa-east-1"
