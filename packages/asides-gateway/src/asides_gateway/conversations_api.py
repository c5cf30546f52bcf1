"""The API of the page: conversations over REST, turns as server-sent events. `add_routes(app, service)`."""

from __future__ import annotations

import asyncio
import time
from io import BytesIO
from typing import Annotated, Any

import msgspec

from asides import __version__
from asides.conversations.async_ import AsyncConversation
from asides.conversations.store.conversation_names import make_name
from asides.relay.allowed_models import AllowedModels
from asides.relay.routes import find_route
from asides.values.attachments import read_attachment
from asides.values.errors import ConfigError
from asides.values.parts import Part
from asides_gateway import web
from asides_gateway.access.turn_meter import TurnMeter
from asides_gateway.page_messages import read_note, show_message
from asides_gateway.page_models import (
    ALL_EFFORTS,
    ChosenModel,
    check_thinking,
    choose_model,
    find_default_model,
    list_models,
)
from asides_gateway.page_requests import (
    HEADERS,
    MOST_WITH_FILES,
    Body,
    Handler,
    PageError,
    add_paths,
    answer_json,
    check_query,
    find_identity,
    find_tenant,
    read_id,
    read_json,
    read_number,
    refuse_unknown,
)
from asides_gateway.page_store import PageStore, StoredMessage
from asides_gateway.page_tables import MOST_TITLE, NO_LIMIT, PageConversation, PageSettings
from asides_gateway.page_turn import PageStream, PageTurn
from asides_gateway.requests_api import captures_bodies
from asides_gateway.service import Service
from asides_gateway.watched_turn import ServiceClient, WatchedTurn

PREFIX = "/ui/api"
_USUAL_CONVERSATIONS, _MOST_CONVERSATIONS = 50, 200
_USUAL_MESSAGES, _MOST_MESSAGES = 50, 500
_MOST_SEARCH = 200

_NO_NUL = r"^[^\x00]*\Z"
"""PostgreSQL rejects NUL in text. Refuse it here, as a client error rather than a store failure."""
Name = Annotated[str, msgspec.Meta(max_length=500, pattern=_NO_NUL)]
Title = Annotated[str, msgspec.Meta(max_length=MOST_TITLE * 4, pattern=_NO_NUL)]
Instructions = Annotated[str, msgspec.Meta(max_length=100_000, pattern=_NO_NUL)]
Amount = (
    Annotated[str, msgspec.Meta(max_length=40, pattern=_NO_NUL)] | Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
)


class NewFile(msgspec.Struct, forbid_unknown_fields=True):
    """A file beside a question."""

    name: Name
    data: bytes
    """In base64."""


class NewConversation(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for a new conversation."""

    model: Name | None = None
    thinking: Amount | None = None
    title: Title | None = None
    system: Instructions | None = None


class ChangedConversation(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for a change. What it does not name stays."""

    model: Name | msgspec.UnsetType = msgspec.UNSET
    thinking: Amount | msgspec.UnsetType | None = msgspec.UNSET
    title: Title | msgspec.UnsetType = msgspec.UNSET
    system: Instructions | msgspec.UnsetType | None = msgspec.UNSET


class NewMessage(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that asks a question."""

    text: str
    model: Name | None = None
    thinking: Amount | None = None
    files: Annotated[list[NewFile], msgspec.Meta(max_length=10)] = []


class Continuation(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request to continue."""

    model: Name | None = None
    thinking: Amount | None = None


class Fork(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for a fork: the message before which it ends."""

    before: Annotated[int, msgspec.Meta(ge=0)]


def add_routes(app: web.Application, service: Service) -> None:
    """Add the paths of the API."""
    api = ConversationsApi(service)
    paths: dict[str, dict[str, Handler]] = {
        "/session": {"GET": api.show_session},
        "/models": {"GET": api.list_models},
        "/conversations": {"GET": api.list_conversations, "POST": api.create},
        "/conversations/{id}": {"GET": api.show, "PATCH": api.change, "DELETE": api.delete},
        "/conversations/{id}/messages": {"POST": api.send},
        "/conversations/{id}/continue": {"POST": api.continue_turn},
        "/conversations/{id}/fork": {"POST": api.fork},
    }
    add_paths(app, PREFIX, paths)

    async def close(_: web.Application) -> None:
        if service.settings.store is None:
            # A shared database is the service's to close.
            await asyncio.to_thread(api.store.close)

    app.on_cleanup.append(close)


class ConversationsApi:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.store = PageStore(service.settings.folder if service.settings.store is None else service.database)

    # --- the gateway --------------------------------------------------------------------------------------------------

    async def show_session(self, request: web.Request) -> web.StreamResponse:
        """What the page needs to know before anything else."""
        settings = self._service.settings
        return answer_json(
            {
                "version": __version__,
                "workers": settings.workers,
                "needs_key": self._service.authenticator.needs_key,
                "store": self.store.kind,
                "default_model": await self._find_default(request),
                "efforts": ALL_EFFORTS,
                "keeps_thinking": self._service.builder.settings.keep_thinking,
                "inspector": {"captures_bodies": captures_bodies(self._service, self._find_tenant(request))},
            }
        )

    async def list_models(self, request: web.Request) -> web.StreamResponse:
        """The models that the page can offer."""
        allowed = self._find_allowed(request)
        service = self._service
        await service.model_lists.refresh(service.builder)
        models = await asyncio.to_thread(
            list_models, service.builder, allowed, service.model_lists.listed, service.settings.shown_models
        )
        return answer_json({"models": models})

    # --- conversations ------------------------------------------------------------------------------------------------

    async def list_conversations(self, request: web.Request) -> web.StreamResponse:
        """The conversations of the tenant, the latest changed first."""
        check_query(request, "search", "before", "limit")
        limit = read_number(request, "limit", _USUAL_CONVERSATIONS, _MOST_CONVERSATIONS) or _USUAL_CONVERSATIONS
        before = read_number(request, "before", None, NO_LIMIT)
        search = request.query.get("search", "").strip()
        if len(search) > _MOST_SEARCH:
            raise PageError(f"search has at most {_MOST_SEARCH} characters.", "invalid_query")
        found = await asyncio.to_thread(self.store.list_page, self._find_tenant(request), search, before, limit + 1)
        more = str(found[limit - 1].version) if len(found) > limit else None
        return answer_json({"conversations": [_show(each) for each in found[:limit]], "next": more})

    async def create(self, request: web.Request) -> web.StreamResponse:
        """A new conversation."""
        body = await self._read(request, NewConversation)
        check_thinking(body.thinking)
        name = body.model or await self._find_default(request)
        settings = PageSettings(_clean_title(body.title), name, self._find_target(name), body.thinking)
        system = _clean_system(body.system)
        made = await asyncio.to_thread(self.store.create, self._find_tenant(request), settings, system)
        return answer_json(_show(made), 201)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """A conversation with its last messages, or those before one."""
        check_query(request, "before", "limit")
        before = read_number(request, "before", None, NO_LIMIT)
        limit = read_number(request, "limit", _USUAL_MESSAGES, _MOST_MESSAGES) or _USUAL_MESSAGES
        found = await self._find(request)
        messages = await asyncio.to_thread(self.store.read_messages, found, before, limit)
        more = messages[0].place if messages and messages[0].place > 0 else None
        # Known before the messages were read: if no turn is under way, they are all there.
        is_answering = found.held_until is not None and found.held_until > time.time()
        system = await asyncio.to_thread(self.store.read_system, found)
        about = {**_show(found), "length": found.length, "answering": is_answering, "system": system}
        return answer_json({**about, "messages": self._show_messages(messages), "next": more})

    async def change(self, request: web.Request) -> web.StreamResponse:
        """Change the title, the model or the thinking of a conversation."""
        body = await self._read(request, ChangedConversation)
        changes: dict[str, str | int | None] = {}
        if body.thinking is not msgspec.UNSET:
            check_thinking(body.thinking)
            changes["thinking"] = body.thinking
        if body.title is not msgspec.UNSET:
            changes["title"] = _clean_title(body.title)
        if body.model is not msgspec.UNSET:
            changes |= {"model": body.model, "target": self._find_target(body.model)}
        tenant, identifier = self._find_tenant(request), read_id(request)
        if body.system is not msgspec.UNSET:
            found = await self._find(request)
            if found.held_until is not None and found.held_until > time.time():
                raise PageError("an answer is under way. Change the instructions after it.", "busy", 409)
            await asyncio.to_thread(self._set_system, found, _clean_system(body.system))
        changed = await asyncio.to_thread(lambda: self.store.change(tenant, identifier, **changes))
        if changed is None:
            raise refuse_unknown()
        return answer_json(_show(changed))

    def _set_system(self, found: PageConversation, text: str | None) -> None:
        conversation = AsyncConversation(client=ServiceClient(self._service), store=self.store, name=found.name)
        if conversation.messages:
            conversation.system = text  # Voids the seals that depend on it.
        else:
            self.store.write_system(found, text)

    async def delete(self, request: web.Request) -> web.StreamResponse:
        """Delete a conversation."""
        if not await asyncio.to_thread(self.store.remove, self._find_tenant(request), read_id(request)):
            raise refuse_unknown()
        return web.Response(status=204, headers=HEADERS)

    async def fork(self, request: web.Request) -> web.StreamResponse:
        """A new conversation with the messages before one."""
        body = await self._read(request, Fork)
        found = await self._find(request)
        if body.before > found.length:
            raise PageError(
                f"there is no message {body.before}; the conversation has {found.length}.", "no_message", 404
            )
        made = await asyncio.to_thread(self._fork, found, body.before, self._find_tenant(request))
        return answer_json(_show(made), 201)

    def _fork(self, source: PageConversation, end: int, tenant: str) -> PageConversation:
        name = make_name("chat")
        conversation = AsyncConversation(client=ServiceClient(self._service), store=self.store, name=source.name)
        conversation.fork(end, name=name)
        return self.store.adopt_fork(tenant, source, name)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def send(self, request: web.Request) -> web.StreamResponse:
        """Ask a question; the answer comes as events."""
        body = await read_json(request, NewMessage, self._service.settings, MOST_WITH_FILES)
        if not body.text.strip() and not body.files:
            raise PageError("the message is blank. Write something.", "blank")
        files = await asyncio.to_thread(_read_files, body.files)
        return await self._stream_turn(request, body.text, body.model, body.thinking, files)

    async def continue_turn(self, request: web.Request) -> web.StreamResponse:
        """Continue a turn that was cut or has no answer."""
        body = await self._read(request, Continuation)
        return await self._stream_turn(request, None, body.model, body.thinking)

    async def _stream_turn(
        self,
        request: web.Request,
        text: str | None,
        model: str | None,
        thinking: str | int | None,
        files: tuple[Part, ...] = (),
    ) -> web.StreamResponse:
        service = self._service
        found = await self._find(request)
        thinking = found.thinking if thinking is None else thinking
        name, is_owner = model or found.model, not service.authenticator.needs_key
        identity, allowed = find_identity(request, service.authenticator), self._find_allowed(request)
        chosen = await asyncio.to_thread(
            lambda: choose_model(name, thinking, service.builder, may_name_files=is_owner, allowed=allowed)
        )
        if (busy := service.find_busy(identity.tenant)) is not None:
            raise PageError(busy.message, "too_many", busy.status)
        key, meter = identity.key, TurnMeter(service.meters, identity.key)
        watched = WatchedTurn(request, service, identity.tenant, "" if key is None else key.id)
        turn = PageTurn(self.store, found, chosen, watched, service.builder.visibility, meter)
        service.begin_request(identity.tenant)
        try:
            stream = await turn.open(text, files)
            await self._keep_choice(request, found, chosen, thinking)
            page = PageStream(request, service.settings, watched.see_bytes)
            try:
                await page.open()
                await turn.run(stream, page.write)
                await page.response.write_eof()
            except ConnectionError:
                pass  # The client is gone; what arrived is kept.
            finally:
                await stream.close()
                await page.close()
            return page.response
        finally:
            service.end_request(identity.tenant)
            await turn.close()

    async def _keep_choice(
        self, request: web.Request, found: PageConversation, chosen: ChosenModel, thinking: str | int | None
    ) -> None:
        """The model and the thinking of a question are those of the next one."""
        if (chosen.name, thinking) != (found.model, found.thinking):
            changes = {"model": chosen.name, "target": chosen.target, "thinking": thinking}
            tenant = self._find_tenant(request)
            await asyncio.to_thread(lambda: self.store.change(tenant, found.id, **changes))

    # --- what they share ----------------------------------------------------------------------------------------------

    def _find_allowed(self, request: web.Request) -> AllowedModels | None:
        """The models that the caller may use; None: all."""
        key = find_identity(request, self._service.authenticator).key
        return None if key is None or not key.limits.models else AllowedModels(key.limits.models)

    async def _find_default(self, request: web.Request) -> str | None:
        return await asyncio.to_thread(find_default_model, self._service.builder, self._find_allowed(request))

    def _find_tenant(self, request: web.Request) -> str:
        return find_tenant(request, self._service.authenticator)

    async def _read(self, request: web.Request, kind: type[Body]) -> Body:
        return await read_json(request, kind, self._service.settings)

    async def _find(self, request: web.Request) -> PageConversation:
        found = await asyncio.to_thread(self.store.find, self._find_tenant(request), read_id(request))
        if found is None:
            raise refuse_unknown()
        return found

    def _find_target(self, name: str | None) -> str | None:
        return None if name is None else find_route(name, self._service.builder, "", "").targets[0]

    def _show_messages(self, messages: list[StoredMessage]) -> list[dict[str, Any]]:
        visibility = self._service.builder.visibility
        return [
            show_message(stored.message, stored.place, read_note(stored.note), visibility)
            for stored in messages
            if stored.message.role != "system"
        ]


def _clean_system(text: str | None) -> str | None:
    return None if text is None or not text.strip() else text


def _read_files(files: list[NewFile]) -> tuple[Part, ...]:
    """The parts of a message for these files: pictures, texts with their names, documents."""
    parts: list[Part] = []
    for file in files:
        stream = BytesIO(file.data)
        stream.name = file.name.replace("/", "_") or "file"  # As open() gives a file one.
        try:
            parts.append(read_attachment(stream))
        except ConfigError:
            raise PageError("a file is not a picture, text in UTF-8 or a document. Convert it.", "file_type") from None
    return tuple(parts)


def _show(conversation: PageConversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        # Made of the first words, which text files may follow.
        "title": conversation.title.partition(" <file name=")[0],
        "model": conversation.model,
        "thinking": conversation.thinking,
        "created_at": conversation.created,
        "updated_at": conversation.updated,
        "messages": conversation.length,
    }


def _clean_title(title: str | None) -> str | None:
    """A title on one line; None for a blank one: then it is made from the first question."""
    return None if title is None else " ".join(title.split())[:MOST_TITLE] or None
