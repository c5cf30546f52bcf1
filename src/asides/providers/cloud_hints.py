"""Whether this machine has credentials of a cloud: a look at variables and files, in microseconds and without network.

Libraries of clouds wait seconds for a metadata server that a laptop does not have. So they are asked only where there
is a hint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from asides.providers.credentials import is_loopback
from asides.providers.find import is_own_address
from asides.providers.provider import Provider
from asides.providers.quirks import Cloud

# Variables that are set only by users of the cloud, or by the cloud on its own machines.
_VARIABLES: dict[Cloud, tuple[str, ...]] = {
    "aws": (
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    ),
    "google-cloud": (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GCE_METADATA_HOST",
        "GCE_METADATA_IP",
        "K_SERVICE",
        "GAE_SERVICE",
    ),
    "azure-ad": (
        "AZURE_CLIENT_ID",
        "AZURE_TENANT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "IDENTITY_ENDPOINT",
        "MSI_ENDPOINT",
    ),
}
# Files that signing in leaves in the home folder, and the variable that names another folder for them.
_FILES: dict[Cloud, tuple[str, ...]] = {
    "aws": (".aws/credentials", ".aws/config"),
    "google-cloud": (".config/gcloud/application_default_credentials.json",),
    "azure-ad": (".azure/azureProfile.json", ".azd/config.json"),
}
_FOLDERS: dict[Cloud, tuple[str, str]] = {
    "google-cloud": ("CLOUDSDK_CONFIG", "application_default_credentials.json"),
    "azure-ad": ("AZURE_CONFIG_DIR", "azureProfile.json"),
}
# Firmware strings of a cloud's machines. Each name is a file of the folder below.
_FIRMWARE = "/sys/class/dmi/id"
_MACHINES: dict[Cloud, tuple[str, str]] = {
    "aws": ("sys_vendor", "Amazon EC2"),
    "google-cloud": ("product_name", "Google"),
    "azure-ad": ("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"),
}
# The variables that disable the metadata server.
_SWITCHES: dict[Cloud, str] = {"aws": "AWS_EC2_METADATA_DISABLED", "google-cloud": "NO_GCE_CHECK"}
_AWS_SECTION = r"\s*\[\s*(?:profile\s+)?(?P<name>[^\]]+?)\s*\]"
_AWS_REGION = r"\s?region\s*=\s*(?P<region>[\w-]+)\s*(?:[#;].*)?"


def has_cloud_hint(cloud: Cloud, environ: Mapping[str, str]) -> bool:
    """Whether the library of this cloud is likely to find credentials."""
    is_hosted = is_cloud_machine(cloud) and environ.get(_SWITCHES.get(cloud, ""), "").strip().lower() != "true"
    if is_hosted or any(environ.get(name, "").strip() for name in _VARIABLES[cloud]):
        return True
    return find_sign_in(cloud, environ) is not None


def find_sign_in(cloud: Cloud, environ: Mapping[str, str]) -> Path | None:
    """The file that signing in to the cloud has left; None without one."""
    variable, name = _FOLDERS.get(cloud, ("", ""))
    places: list[Path] = []
    if variable and (folder := environ.get(variable, "").strip()):
        places.append(Path(folder, name))
    else:
        if cloud == "google-cloud" and (folder := environ.get("APPDATA", "").strip()):
            places.append(Path(folder, "gcloud", name))
        if (home := _find_home(environ)) is not None:
            places += [home / name for name in _FILES[cloud]]
    return next((place for place in places if place.exists()), None)


def _find_home(environ: Mapping[str, str]) -> Path | None:
    """The home folder; None without one. A relative path counts as none: the current folder may be anyone's."""
    home = environ.get("HOME", "").strip() or environ.get("USERPROFILE", "").strip()
    return Path(home) if home and Path(home).is_absolute() else None


@cache
def is_cloud_machine(cloud: Cloud) -> bool:
    """Whether this machine is one of the cloud's, so that its metadata server answers."""
    name, says = _MACHINES[cloud]
    try:
        return Path(_FIRMWARE, name).read_text(encoding="ascii", errors="replace").strip().startswith(says)
    except OSError:
        return False


def can_receive_token(provider: Provider, cloud: Cloud, address: str) -> bool:
    """Whether the credentials of a cloud may go to this address without being asked for.

    A signature is good for one request to one host. A token is good for everything, so it goes to the provider's own
    hosts and to this machine alone; `api_key=` takes a function for other addresses.
    """
    return cloud == "aws" or is_loopback(address) or is_own_address(provider, address)


def read_aws_region(environ: Mapping[str, str]) -> str | None:
    """The region of the user's AWS profile; None where the files name none."""
    home = _find_home(environ)
    named = environ.get("AWS_CONFIG_FILE", "").strip()
    path = Path(named).expanduser() if named else None if home is None else home / ".aws" / "config"
    profile = environ.get("AWS_PROFILE", "").strip() or environ.get("AWS_DEFAULT_PROFILE", "").strip() or "default"
    try:
        lines = [] if path is None else path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    section = ""
    for line in lines:
        if found := re.match(_AWS_SECTION, line):
            section = found["name"].strip("'\"")
        elif section == profile and (found := re.fullmatch(_AWS_REGION, line)):
            return found["region"]
    return None
