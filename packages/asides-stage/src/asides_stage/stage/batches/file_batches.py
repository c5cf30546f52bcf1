"""Batches over an uploaded file of JSON lines (`/v1/files`, `/v1/batches`), as OpenAI has them.

A line is checked while the batch is validated; a batch with a bad line fails as a whole. Facts from the API reference
of OpenAI and of Azure (platform.openai.com/docs/api-reference/batch, learn.microsoft.com batches-create-batch),
2026-11-16.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from asides.dialects.server_half import RequestFields
from asides_stage.stage.batches import BatchRow, PlayedBatch, RowResult, StoredFile, make_id
from asides_stage.stage.response_plan import ResponsePlan
from asides_stage.stage.rules import read_account
from asides_stage.stage.side_endpoints import Answer, EndpointCall, answer_json

_MOST_REQUESTS = 50_000
_MOST_BYTES = 200 * 1024 * 1024
_WINDOW = "24h"
_WINDOW_SECONDS = 24 * 60 * 60
_PATHS = ("/v1/responses", "/v1/chat/completions", "/v1/embeddings", "/v1/completions")
_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
_MOST_METADATA = 16


# --- files ------------------------------------------------------------------------------------------------------------


def _upload_file(call: EndpointCall) -> Answer:
    fields = _parse_multipart(call)
    purpose = fields.get("purpose", (None, b""))[1].decode("utf-8", "replace")
    if "purpose" not in fields:
        return call.refuse(400, "'purpose' is a required property")
    if purpose not in _PURPOSES:
        return call.refuse(400, f"'{purpose}' is not one of {list(_PURPOSES)} - 'purpose'")
    if "file" not in fields:
        return call.refuse(400, "'file' is a required property")
    name, content = fields["file"]
    limit = call.batches.script.most_bytes or _MOST_BYTES
    if purpose == "batch" and len(content) > limit:
        return call.refuse(413, f"File is too large. Maximum file size for batch is {limit} bytes.")
    if purpose == "batch" and not (name or "").endswith(".jsonl"):
        return call.refuse(400, "Invalid file format for Batch API. Must be .jsonl")
    file = call.batches.store_file("file-", read_account(call.request), name or "upload", purpose, content)
    return answer_json(_write_file(file))


def _parse_multipart(call: EndpointCall) -> dict[str, tuple[str | None, bytes]]:
    """Return the fields of a form: the name of the file, where it is one, and the content."""
    kind = call.request.headers.get("content-type", "")
    boundary = re.search(r'multipart/form-data;.*boundary="?([^";]+)"?', kind)
    if boundary is None:
        return {}
    fields: dict[str, tuple[str | None, bytes]] = {}
    for part in call.request.body.split(b"--" + boundary[1].encode())[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        file_name = re.search(rb'filename="([^"]*)"', head)
        if name is not None:
            shown = None if file_name is None else file_name[1].decode("utf-8", "replace")
            fields[name[1].decode("utf-8", "replace")] = (shown, content.removesuffix(b"\r\n"))
    return fields


def _write_file(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "object": "file",
        "bytes": len(file.content),
        "created_at": int(file.created_at),
        "expires_at": int(file.created_at) + 30 * 24 * 60 * 60,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def _find_file(call: EndpointCall) -> StoredFile | None:
    return call.batches.find_file(call.names["file"], read_account(call.request))


def _refuse_file(call: EndpointCall) -> Answer:
    return call.refuse(404, f"No such File object: {call.names['file']}")


def _show_file(call: EndpointCall) -> Answer:
    file = _find_file(call)
    return _refuse_file(call) if file is None else answer_json(_write_file(file))


def _read_file(call: EndpointCall) -> Answer:
    file = _find_file(call)
    if file is None:
        return _refuse_file(call)
    body = file.content
    return Answer(ResponsePlan(200, {"content-type": "application/octet-stream"}, (body,) if body else (), len(body)))


def _delete_file(call: EndpointCall) -> Answer:
    file = _find_file(call)
    if file is None:
        return _refuse_file(call)
    del call.batches.files[file.id]
    return answer_json({"id": file.id, "object": "file", "deleted": True})


# --- batches ----------------------------------------------------------------------------------------------------------


def _create_batch(call: EndpointCall) -> Answer:
    fields = RequestFields.parse_body(call.request.body)
    names = {name: fields.take(name, str) for name in ("input_file_id", "endpoint", "completion_window")}
    for name, value in names.items():
        if value is None:
            return call.refuse(400, f"Missing required parameter: '{name}'.")
    if names["completion_window"] != _WINDOW:
        return call.refuse(400, f"Invalid value: '{names['completion_window']}'. Supported values are: '{_WINDOW}'.")
    if names["endpoint"] not in _PATHS:
        return call.refuse(400, f"Invalid value: '{names['endpoint']}'. Supported values are: {', '.join(_PATHS)}.")
    metadata = fields.take("metadata", dict) or {}
    if (problem := _check_metadata(metadata)) is not None:
        return call.refuse(400, problem)
    account = read_account(call.request)
    file = call.batches.find_file(str(names["input_file_id"]), account)
    if file is None:
        return call.refuse(404, f"No such File object: {names['input_file_id']}")
    if file.purpose != "batch":
        return call.refuse(400, f"File '{file.id}' has purpose '{file.purpose}'; the purpose must be 'batch'.")
    endpoint = str(names["endpoint"])
    rows, problems = _read_rows(file.content, endpoint, call.batches.script.most_requests or _MOST_REQUESTS)
    facts = {"endpoint": endpoint, "input_file_id": file.id, "metadata": metadata or None}
    if call.batches.limits_creation():
        return call.refuse(429, "Too many batches were created. Try again later.")
    batch = call.batches.add("files", make_id("batch_"), account, rows, call.answer_row, facts)
    batch.problems = problems
    if call.batches.is_crowded():
        text = "Enqueued token limit reached. Please try again once some in_progress batches have been completed."
        batch.problems = [_describe_problem(None, "token_limit_exceeded", text)]
    if call.batches.loses_creation():
        return Answer(ResponsePlan(None, ending="cut"))
    return answer_json(_write_batch(batch, call))


def _check_metadata(metadata: dict[str, Any]) -> str | None:
    if len(metadata) > _MOST_METADATA:
        return f"Invalid 'metadata': too many properties. Expected at most {_MOST_METADATA}."
    for name, value in metadata.items():
        if len(name) > 64 or not isinstance(value, str) or len(value) > 512:
            return f"Invalid 'metadata.{name[:64]}': a name has at most 64 characters, a value is text of at most 512."
    return None


def _read_rows(content: bytes, endpoint: str, most: int) -> tuple[list[BatchRow], list[dict[str, Any]]]:
    """Return the rows of a file, and what is wrong with it."""
    rows: list[BatchRow] = []
    problems: list[dict[str, Any]] = []
    seen: set[str] = set()
    models: set[Any] = set()
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _read_row(line, endpoint)
        if isinstance(row, tuple):
            problems.append(_describe_problem(number, *row))
            continue
        if row.id in seen:
            problems.append(
                _describe_problem(number, "duplicate_custom_id", f"The custom_id '{row.id}' is used twice.")
            )
        seen.add(row.id)
        models.add(msgspec.json.decode(row.body).get("model"))
        if len(models) > 1:
            text = "The provided model does not match that of the other requests in the file."
            problems.append(_describe_problem(number, "mismatched_model", text))
            models = {next(iter(models))}
        rows.append(row)
    if not rows and not problems:
        problems.append(_describe_problem(None, "empty_file", "The batch file is empty."))
    if len(rows) > most:
        text = f"The batch input file contains more than the maximum allowed requests: {most}."
        problems.append(_describe_problem(None, "too_many_tasks", text))
    return rows, problems


def _read_row(line: bytes, endpoint: str) -> BatchRow | tuple[str, str]:
    """Return the row of a line, or the code and the words of its error."""
    try:
        given = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "invalid_json_line", "This line is not parseable as valid JSON."
    if not isinstance(given, dict):
        return "invalid_json_line", "This line is not a JSON object."
    name, body = given.get("custom_id"), given.get("body")
    if not isinstance(name, str) or not name:
        return "missing_required_parameter", "Missing required parameter: 'custom_id'."
    if given.get("method") != "POST":
        return "invalid_method", "Invalid value for 'method'. Supported values are: 'POST'."
    if given.get("url") != endpoint:
        return "invalid_url", f"The URL provided for this request does not match the batch endpoint '{endpoint}'."
    if not isinstance(body, dict):
        return "missing_required_parameter", "Missing required parameter: 'body'."
    if body.get("stream"):
        return "invalid_request", "Streaming is not supported in the Batch API."
    return BatchRow(name, endpoint, msgspec.json.encode(body))


def _describe_problem(line: int | None, code: str, message: str) -> dict[str, Any]:
    return {"code": code, "line": line, "message": message, "param": None}


def _write_batch(batch: PlayedBatch, call: EndpointCall) -> dict[str, Any]:
    phase = batch.advance()
    if phase == "ended" and "output_file_id" not in batch.facts:
        _store_results(batch, call)
    status: str = {
        "waiting": "validating",
        "running": "in_progress",
        "finishing": "finalizing",
        "cancelling": "cancelling",
    }.get(phase, "")
    if phase == "ended":
        is_expired = batch.cancelled_at is None and batch.has_hung()
        status = "failed" if batch.problems else "expired" if is_expired else "completed"
        status = "cancelled" if batch.cancelled_at is not None and not batch.problems else status
    created, ended = int(batch.created_at), None if batch.ended_at is None else int(batch.ended_at)
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.facts["endpoint"],
        "errors": {"object": "list", "data": batch.problems} if status == "failed" else None,
        "input_file_id": batch.facts["input_file_id"],
        "completion_window": _WINDOW,
        "status": status,
        "output_file_id": batch.facts.get("output_file_id"),
        "error_file_id": batch.facts.get("error_file_id"),
        "created_at": created,
        "in_progress_at": None if phase == "waiting" else created,
        "expires_at": created + _WINDOW_SECONDS,
        "finalizing_at": None,
        "completed_at": ended if status == "completed" else None,
        "failed_at": ended if status == "failed" else None,
        "expired_at": ended if status == "expired" else None,
        "cancelling_at": None if batch.cancelled_at is None else int(batch.cancelled_at),
        "cancelled_at": ended if status == "cancelled" else None,
        "request_counts": {
            "total": 0 if batch.problems else len(batch.rows),
            "completed": batch.count("answered"),
            "failed": len(batch.results) - batch.count("answered"),
        },
        "metadata": batch.facts["metadata"],
    }


def _store_results(batch: PlayedBatch, call: EndpointCall) -> None:
    """Write the two files of a batch that has ended: the replies, and the errors."""
    for fact, lines in (
        ("output_file_id", [_write_result(result) for result in batch.results if result.kind == "answered"]),
        ("error_file_id", [_write_result(result) for result in batch.results if result.kind != "answered"]),
    ):
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        name = f"{batch.id}_{fact.removesuffix('_file_id')}.jsonl"
        file = call.batches.store_file("file-", batch.account, name, "batch_output", content) if lines else None
        batch.facts[fact] = None if file is None else file.id


# The words for a row that was not run (the schema BatchRequestOutput, 2026-11-16).
_NOT_RUN = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}


def _write_result(result: RowResult) -> dict[str, Any]:
    written: dict[str, Any] = {"id": make_id("batch_req_"), "custom_id": result.id, "response": None, "error": None}
    if result.kind in _NOT_RUN:
        code, message = _NOT_RUN[result.kind]
        written["error"] = {"code": code, "message": message}
    elif not result.body:
        written["error"] = {"code": "request_timeout", "message": "The call to the model timed out."}
    else:
        response = {"status_code": result.status, "request_id": make_id("req_"), "body": msgspec.Raw(result.body)}
        written["response"] = response
    return written


def _find_batch(call: EndpointCall) -> PlayedBatch | None:
    return call.batches.find("files", call.names["batch"], read_account(call.request))


def _refuse_batch(call: EndpointCall) -> Answer:
    return call.refuse(404, f"No batch found with id '{call.names['batch']}'.")


def _show_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    return _refuse_batch(call) if batch is None else answer_json(_write_batch(batch, call))


def _cancel_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    batch.cancel()
    if batch.cancelled_at is None:
        status = _write_batch(batch, call)["status"]
        return call.refuse(409, f"Cannot cancel a batch with status '{status}'.")
    return answer_json(_write_batch(batch, call))


def _list_batches(call: EndpointCall) -> Answer:
    query = dict(parse_qsl(call.request.query))
    batches = call.batches.list("files", read_account(call.request))
    after = query.get("after")
    if after is not None:
        places = [place for place, batch in enumerate(batches) if batch.id == after]
        batches = batches[places[0] + 1 :] if places else []
    limit = int(query.get("limit", "20"))
    if not 1 <= limit <= 100:
        return call.refuse(400, f"Invalid 'limit': {limit}. Expected a value between 1 and 100.")
    page = [_write_batch(batch, call) for batch in batches[:limit]]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return answer_json({"object": "list", "data": page, **ends, "has_more": len(batches) > limit})


ENDPOINTS = (
    ("POST", r"/files$", _upload_file),
    ("GET", r"/files/(?P<file>[^/]+)$", _show_file),
    ("DELETE", r"/files/(?P<file>[^/]+)$", _delete_file),
    ("GET", r"/files/(?P<file>[^/]+)/content$", _read_file),
    ("POST", r"/batches$", _create_batch),
    ("GET", r"/batches$", _list_batches),
    ("GET", r"/batches/(?P<batch>[^/]+)$", _show_batch),
    ("POST", r"/batches/(?P<batch>[^/]+)/cancel$", _cancel_batch),
)
