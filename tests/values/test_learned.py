"""What a refusal taught travels with the answer that it made possible."""

from __future__ import annotations

from asides.history.document import from_document, to_document
from asides.values.learned import Learned, digest_refused
from asides.values.messages import Message, user
from asides.values.parts import Text
from asides.values.reply import CallContext, Reply

FACT = Learned(
    "effort_unsupported_value",
    "https://api.example/v1",
    "openai_chat",
    "0123456789ab",
    "m-1",
    (("efforts", ("low", "high")),),
    (digest_refused("seal"),),
)


def test_the_message_of_a_reply_carries_what_it_took() -> None:
    message = Reply((Text("hi"),), call=CallContext(learned=(FACT,), prefix="abc")).to_message()
    assert message is not None
    assert (message.learned, message.prefix) == ((FACT,), "abc")


def test_a_saved_conversation_has_it_too() -> None:
    messages = (user("hello"), Message("assistant", (Text("hi"),), learned=(FACT,), prefix="abc"))
    (_, read) = from_document(to_document(messages)).messages
    assert (read.learned, read.prefix) == ((FACT,), "abc")


def test_a_digest_shows_nothing_of_the_seal() -> None:
    assert digest_refused("seal") == digest_refused("seal") != digest_refused("Seal")
    assert "seal" not in digest_refused("seal")
    assert digest_refused("\ud800")  # half a character, as a server may send it
