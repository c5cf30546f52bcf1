"""Batches of contents (`models/…:batchGenerateContent`, `batches/…`), as Gemini has them: in the body or in a file.

A batch is an operation: its state and its output are in `metadata`. A batch that has expired or was cancelled has no
output. Facts from ai.google.dev/gemini-api/docs/batch-api, ai.google.dev/api/batch-api, and the client google-genai
3.1.0, 2026-11-16.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from asides.dialects.server_half import RequestFields
from asides_stage.stage.batches import BatchRow, PlayedBatch, RowResult, StoredFile, make_id
from asides_stage.stage.response_plan import ResponsePlan
from asides_stage.stage.rules import read_account
from asides_stage.stage.side_endpoints import Answer, EndpointCall, answer_json

_MOST_INLINE_BYTES = 20 * 1024 * 1024
_MOST_FILE_BYTES = 2 * 1024 * 1024 * 1024
_TYPE = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_STATES = {"waiting": "PENDING", "running": "RUNNING", "finishing": "RUNNING", "cancelling": "RUNNING"}
_INVALID = "Invalid value at 'batch.input_config': "


# --- files: resumable uploads -----------------------------------------------------------------------------------------


def _upload_file(call: EndpointCall) -> Answer:
    """Begin an upload, or take its bytes. The command is in a header."""
    headers = call.request.headers
    commands = {word.strip() for word in headers.get("x-goog-upload-command", "").split(",")}
    query = dict(parse_qsl(call.request.query))
    if "start" in commands:
        return _begin_upload(call)
    upload = call.batches.uploads.get(query.get("upload_id", ""))
    if upload is None:
        return call.refuse(404, "Upload has already been terminated, or does not exist.")
    if "upload" not in commands or headers.get("x-goog-upload-offset") != str(len(upload["content"])):
        return call.refuse(400, "X-Goog-Upload-Command and X-Goog-Upload-Offset do not fit the upload.")
    # One text holds the bytes of the upload, as latin-1.
    upload["content"] += call.request.body.decode("latin-1")
    if "finalize" not in commands:
        return Answer(ResponsePlan(200, {"x-goog-upload-status": "active"}, (), 0))
    del call.batches.uploads[query["upload_id"]]
    content = upload["content"].encode("latin-1")
    if len(content) != int(upload["length"]):
        return call.refuse(400, "The file is not as long as its upload said.")
    account = read_account(call.request) or upload["account"]
    file = call.batches.store_file("", account, upload["name"], upload["type"], content)
    body = msgspec.json.encode({"file": _write_file(file)})
    plan = ResponsePlan(200, {"content-type": "application/json", "x-goog-upload-status": "final"}, (body,), len(body))
    return Answer(plan)


def _begin_upload(call: EndpointCall) -> Answer:
    headers = call.request.headers
    if headers.get("x-goog-upload-protocol") != "resumable":
        return call.refuse(400, "X-Goog-Upload-Protocol must be resumable.")
    length = headers.get("x-goog-upload-header-content-length", "")
    if not length.isdigit() or int(length) > (call.batches.script.most_bytes or _MOST_FILE_BYTES):
        return call.refuse(400, "X-Goog-Upload-Header-Content-Length is missing or too large.")
    given = RequestFields.parse_body(call.request.body).take("file", dict) if call.request.body else None
    upload_id = make_id("upload-")
    call.batches.uploads[upload_id] = {
        "account": read_account(call.request),
        "name": str((given or {}).get("displayName") or (given or {}).get("display_name") or ""),
        "type": headers.get("x-goog-upload-header-content-type", "application/octet-stream"),
        "length": length,
        "content": "",
    }
    host = headers.get("host", "")
    url = f"http://{host}{call.request.path}?upload_id={upload_id}&upload_protocol=resumable"
    return Answer(ResponsePlan(200, {"x-goog-upload-url": url, "x-goog-upload-status": "active"}, (), 0))


def _write_file(file: StoredFile) -> dict[str, Any]:
    return {
        "name": f"files/{file.id}",
        "displayName": file.name,
        "mimeType": file.purpose,
        "sizeBytes": str(len(file.content)),
        "createTime": _write_time(file.created_at),
        "expirationTime": _write_time(file.created_at + 48 * 60 * 60),
        "state": "ACTIVE",
        "uri": f"https://generativelanguage.googleapis.com/v1beta/files/{file.id}",
    }


def _find_file(call: EndpointCall, name: str) -> StoredFile | None:
    return call.batches.find_file(name.removeprefix("files/"), read_account(call.request))


def _refuse_file(call: EndpointCall) -> Answer:
    return call.refuse(403, f"You do not have permission to access the File {call.names['file']} or it may not exist.")


def _show_file(call: EndpointCall) -> Answer:
    file = _find_file(call, call.names["file"])
    return _refuse_file(call) if file is None else answer_json(_write_file(file))


def _read_file(call: EndpointCall) -> Answer:
    file = _find_file(call, call.names["file"])
    if file is None:
        return _refuse_file(call)
    if dict(parse_qsl(call.request.query)).get("alt") != "media":
        return call.refuse(400, "A file is read with alt=media.")
    body = file.content
    return Answer(ResponsePlan(200, {"content-type": "application/jsonl"}, (body,) if body else (), len(body)))


def _delete_file(call: EndpointCall) -> Answer:
    file = _find_file(call, call.names["file"])
    if file is None:
        return _refuse_file(call)
    del call.batches.files[file.id]
    return answer_json({})


# --- batches ----------------------------------------------------------------------------------------------------------


def _pick(fields: Any, name: str) -> Any:
    """Return a field under either of its two spellings."""
    if not isinstance(fields, dict):
        return None
    return fields.get(name, fields.get(re.sub("([A-Z])", r"_\1", name).lower()))


def _create_batch(call: EndpointCall) -> Answer:
    batch = RequestFields.parse_body(call.request.body).take("batch", dict)
    if not (name := _pick(batch, "displayName")) or not isinstance(name, str):
        return call.refuse(400, "Invalid value at 'batch.display_name': it is required.")
    config = _pick(batch, "inputConfig")
    file_name, given = _pick(config, "fileName"), _pick(_pick(config, "requests"), "requests")
    if (file_name is None) == (given is None):
        return call.refuse(400, f"{_INVALID}set either requests or file_name.")
    limit = call.batches.script.most_bytes
    if given is not None and len(call.request.body) > (limit or _MOST_INLINE_BYTES):
        return call.refuse(400, "Request payload size exceeds the limit: 20971520 bytes.")
    path = f"/v1beta/models/{call.names['model']}:generateContent"
    rows: list[BatchRow] | str
    if file_name is not None:
        file = _find_file(call, str(file_name))
        if file is None:
            return call.refuse(400, f"{_INVALID}the file {file_name} does not exist.")
        rows = _read_file_rows(file.content, path)
    else:
        rows = _read_inline_rows(given, path)
    if isinstance(rows, str):
        return call.refuse(400, rows)
    most = call.batches.script.most_requests
    if most is not None and len(rows) > most:
        return call.refuse(400, f"{_INVALID}more than {most} requests.")
    facts = {"name": name, "model": f"models/{call.names['model']}", "is_file": file_name is not None}
    if call.batches.limits_creation():
        return call.refuse(429, "Too many batches were created. Try again later.")
    account = read_account(call.request)
    added = call.batches.add("contents", f"batches/{make_id('')}", account, rows, call.answer_row, facts)
    if call.batches.loses_creation():
        return Answer(ResponsePlan(None, ending="cut"))
    return answer_json(_write_batch(added, call))


def _read_inline_rows(given: Any, path: str) -> list[BatchRow] | str:
    if not isinstance(given, list) or not given:
        return f"{_INVALID}requests is empty."
    rows: list[BatchRow] = []
    for place, each in enumerate(given):
        request, metadata = _pick(each, "request"), _pick(each, "metadata")
        if not isinstance(request, dict):
            return f"Invalid value at 'batch.input_config.requests.requests[{place}].request': it is required."
        key = metadata.get("key") if isinstance(metadata, dict) else None
        rows.append(BatchRow(key if isinstance(key, str) else f"#{place}", path, _drop_model(request)))
    return rows


def _read_file_rows(content: bytes, path: str) -> list[BatchRow] | str:
    rows: list[BatchRow] = []
    seen: set[str] = set()
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            each = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return f"{_INVALID}line {number} of the file is no JSON."
        key, request = _pick(each, "key"), _pick(each, "request")
        if not isinstance(key, str) or not isinstance(request, dict):
            return f"{_INVALID}line {number} of the file needs a key and a request."
        if key in seen:
            return f"{_INVALID}line {number} of the file repeats the key {key}."
        seen.add(key)
        rows.append(BatchRow(key, path, _drop_model(request)))
    return rows or f"{_INVALID}the file is empty."


def _drop_model(request: dict[str, Any]) -> bytes:
    # A live request has the model in its path alone.
    return msgspec.json.encode({name: value for name, value in request.items() if name != "model"})


def _write_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def _write_batch(batch: PlayedBatch, call: EndpointCall) -> dict[str, Any]:
    phase = batch.advance()
    state = _STATES.get(phase, "")
    if phase == "ended":
        state = "CANCELLED" if batch.cancelled_at is not None else "EXPIRED" if batch.has_hung() else "SUCCEEDED"
    done = batch.count("answered"), batch.count("failed")
    stats = {"requestCount": len(batch.rows), "successfulRequestCount": done[0], "failedRequestCount": done[1]}
    stats["pendingRequestCount"] = len(batch.rows) - sum(done) if phase != "ended" else 0
    metadata: dict[str, Any] = {
        "@type": f"{_TYPE}GenerateContentBatch",
        "name": batch.id,
        "model": batch.facts["model"],
        "displayName": batch.facts["name"],
        "createTime": _write_time(batch.created_at),
        "updateTime": _write_time(batch.ended_at or batch.created_at),
        "batchStats": {name: str(count) for name, count in stats.items() if count},
        "state": f"BATCH_STATE_{state}",
    }
    written: dict[str, Any] = {"name": batch.id, "metadata": metadata}
    if phase == "ended":
        metadata["endTime"] = _write_time(batch.ended_at or batch.created_at)
        written["done"] = True
        if state == "SUCCEEDED":
            output = _write_output(batch, call)
            metadata["output"] = output
            written["response"] = {"@type": f"{_TYPE}GenerateContentBatchOutput", **output}
        else:
            written["error"] = {"code": 1 if state == "CANCELLED" else 4, "message": f"The batch is {state.lower()}."}
    return written


def _write_output(batch: PlayedBatch, call: EndpointCall) -> dict[str, Any]:
    if not batch.facts["is_file"]:
        in_order = {row.id: place for place, row in enumerate(batch.rows)}
        results = sorted(batch.results, key=lambda result: in_order[result.id])
        return {"inlinedResponses": {"inlinedResponses": [_write_result(result, inline=True) for result in results]}}
    if "file" not in batch.facts:
        content = b"".join(msgspec.json.encode(_write_result(result)) + b"\n" for result in batch.results)
        file = call.batches.store_file("batch-", batch.account, batch.facts["name"], "application/jsonl", content)
        batch.facts["file"] = f"files/{file.id}"
    return {"responsesFile": batch.facts["file"]}


class _ErrorBody(msgspec.Struct):
    error: Any = None


def _write_result(result: RowResult, *, inline: bool = False) -> dict[str, Any]:
    name = {} if result.id.startswith("#") else {"metadata": {"key": result.id}} if inline else {"key": result.id}
    if result.kind == "answered":
        return {**name, "response": msgspec.Raw(result.body)}
    error = msgspec.json.decode(result.body, type=_ErrorBody).error if result.body else None
    if not isinstance(error, dict):
        return {**name, "error": {"code": 13, "message": "Internal error."}}
    return {**name, "error": {"code": _CODES.get(result.status, 13), "message": str(error.get("message", ""))}}


# A status of HTTP, and the code of google.rpc.Status that a row has.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 429: 8, 499: 1, 500: 13, 501: 12, 503: 14, 504: 4}


def _find_batch(call: EndpointCall) -> PlayedBatch | None:
    return call.batches.find("contents", f"batches/{call.names['batch']}", read_account(call.request))


def _refuse_batch(call: EndpointCall) -> Answer:
    return call.refuse(404, f"Batch batches/{call.names['batch']} not found.")


def _show_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    return _refuse_batch(call) if batch is None else answer_json(_write_batch(batch, call))


def _cancel_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    batch.cancel()
    return answer_json({})


def _delete_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    call.batches.delete(batch)
    return answer_json({})


def _list_batches(call: EndpointCall) -> Answer:
    query = dict(parse_qsl(call.request.query))
    batches = call.batches.list("contents", read_account(call.request))
    size, start = int(query.get("pageSize", "50")), int(query.get("pageToken") or "0")
    page = batches[start : start + size]
    more = {"nextPageToken": str(start + size)} if len(batches) > start + size else {}
    return answer_json({"operations": [_write_batch(batch, call) for batch in page], **more})


_BATCH = r"/batches/(?P<batch>[^/:]+)"
_FILE = r"/files/(?P<file>[^/:]+)"
ENDPOINTS = (
    ("POST", r"/upload/v1\w*/files$", _upload_file),
    ("PUT", r"/upload/v1\w*/files$", _upload_file),
    ("GET", rf"{_FILE}$", _show_file),
    ("DELETE", rf"{_FILE}$", _delete_file),
    ("GET", rf"{_FILE}:download$", _read_file),
    ("POST", r"/models/(?P<model>.+):batchGenerateContent$", _create_batch),
    ("GET", r"/batches$", _list_batches),
    ("GET", rf"{_BATCH}$", _show_batch),
    ("DELETE", rf"{_BATCH}$", _delete_batch),
    ("POST", rf"{_BATCH}:cancel$", _cancel_batch),
)
