"""The signatures of AWS, against its documents and its test suite."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime

from asides.providers.aws_signing import derive_signing_key, sign
from asides.providers.credentials import AwsCredentials

# The credentials and the moment of AWS's documents and of its test suite.
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()


def credentials(service: str = "service", token: str = "") -> AwsCredentials:
    return AwsCredentials("AKIDEXAMPLE", SECRET, token, region="us-east-1", service=service)


def signature(headers: dict[str, str]) -> str:
    return headers["Authorization"].rpartition("Signature=")[2]


def test_the_key_of_a_day_is_the_one_in_the_documents() -> None:
    key = derive_signing_key(credentials("iam"), "20150830")
    assert key.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_the_plainest_request_of_the_test_suite() -> None:
    headers = sign("GET", "https://example.amazonaws.com/", {}, b"", credentials(), NOW)
    assert headers == {
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        ),
    }


def test_the_example_of_the_documents_with_a_query_and_a_content_type() -> None:
    sent = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8", "User-Agent": "not signed"}
    url = "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"
    headers = sign("GET", url, sent, b"", credentials("iam"), NOW)
    assert "SignedHeaders=content-type;host;x-amz-date," in headers["Authorization"]
    assert signature(headers) == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


def test_a_model_in_the_path_is_encoded_once_more_and_the_body_is_covered() -> None:
    """Worked out step by step, in another way than the code does it."""
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-micro-v1%3A0/converse"
    sent = {"Content-Type": "application/json"}
    headers = sign("POST", url, sent, b"{}", credentials("bedrock", "TOKEN"), NOW)
    canonical = (
        "POST\n/model/amazon.nova-micro-v1%253A0/converse\n\n"
        "content-type:application/json\nhost:bedrock-runtime.us-east-1.amazonaws.com\n"
        "x-amz-date:20150830T123600Z\nx-amz-security-token:TOKEN\n\n"
        "content-type;host;x-amz-date;x-amz-security-token\n"
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )
    scope = "20150830/us-east-1/bedrock/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n20150830T123600Z\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    day = hmac.digest(b"AWS4" + SECRET.encode(), b"20150830", "sha256")
    key = hmac.digest(
        hmac.digest(hmac.digest(day, b"us-east-1", "sha256"), b"bedrock", "sha256"), b"aws4_request", "sha256"
    )
    assert signature(headers) == hmac.digest(key, to_sign.encode(), "sha256").hex()
    assert headers["X-Amz-Security-Token"] == "TOKEN"


def test_every_part_of_a_request_changes_its_signature() -> None:
    def signed(method: str = "POST", url: str = "http://127.0.0.1:8000/a", body: bytes = b"x", now: float = NOW) -> str:
        return signature(sign(method, url, {}, body, credentials(), now))

    changed = {
        signed(),
        signed(method="GET"),
        signed(url="http://127.0.0.1:8001/a"),
        signed(url="http://127.0.0.1:8000/b"),
        signed(url="http://127.0.0.1:8000/a?q=1"),
        signed(body=b"y"),
        signed(now=NOW + 1),
    }
    assert len(changed) == 7
    assert signed(url="https://host/a") == signed(url="https://host:443/a")
