"""Discord's events as arrivals: every kind of message, and whatever else may come."""

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.discord_samples import (
    GUILDS,
    NAMES,
    RECEIVED,
    edit,
    message,
    only,
    parsed,
    reaction,
    sample,
    town,
    unsupported,
)
from belino.adapters.discord.content import readable
from belino.adapters.discord.parse import DiscordParseContext, is_news, parse
from belino.domain.media import MediaKind
from belino.domain.message import Author, ChatType, ConversationKey, Deletion, Message, Unsupported
from belino.testing.discord import BOT_ID

ROOM, FORUM = "1456255928369152000", "1456255958777856002"


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_becomes_arrivals_without_links_or_tokens(name: str) -> None:
    raw = sample(name)
    before = deepcopy(raw)
    arrivals = parsed(raw)
    assert arrivals and raw == before and parsed(raw) == arrivals
    for arrival in arrivals:
        assert ConversationKey.parse(str(arrival.conversation)) == arrival.conversation
        assert arrival.id and arrival.sent.tzinfo is UTC
        shown = repr(arrival)
        assert "hm=" not in shown and "aW50ZXJhY3Rpb246ZGVtbw" not in shown and "cdn.discordapp" not in shown


def test_an_author_has_the_names_that_other_servers_show_too() -> None:
    assert message("text").author.other_names == ("Ada Lovelace", "ada")


def test_a_message_has_the_name_people_see_and_the_id_that_counts() -> None:
    said = message("text")
    assert (said.author.id, said.author.name, said.author.is_bot) == ("1456255637913600000", "Countess", False)
    assert (said.text, said.channel_name, said.chat_type) == (
        "The ferry leaves at 9:40, not 9:50!", "general", ChatType.GROUP,
    )  # fmt: skip
    assert said.sent == datetime(2026, 1, 1, 13, 1, 16, 500000, tzinfo=UTC)
    assert (said.conversation.channel, said.conversation.thread, said.addressed) == (ROOM, None, False)


@pytest.mark.parametrize(
    ("name", "addressed"),
    [
        ("text", False),
        ("text_dm", True),
        ("mention_bot", True),
        ("mention_bot_nickname", True),
        ("mention_role", True),
        ("mention_everyone", False),
        ("mention_other", False),
        ("reply", False),
        ("reply_to_bot", True),
        ("group_dm", False),
        ("thread_mention", True),
        ("slash_command", True),
        ("voice_message_reply", True),
    ],
)
def test_who_speaks_to_the_bot_is_told(name: str, addressed: bool) -> None:
    assert message(name).addressed is addressed


def test_who_is_mentioned_is_read_from_the_text_only_where_nothing_else_says_so() -> None:
    raw = sample("text")
    raw["d"] |= {"content": f"<@!{BOT_ID}> hello"}
    for listed in (True, False):
        if not listed:
            del raw["d"]["mentions"]
        (said,) = parsed(raw)
        assert isinstance(said, Message) and (said.text, said.addressed) == ("@belino hello", not listed)


def test_a_role_that_is_not_the_bots_own_is_somebody_else() -> None:
    assert not message("mention_role", mention_roles=["1456255897960448999"]).addressed


def test_people_channels_times_and_commands_are_told_by_name() -> None:
    assert message("markup").text.startswith("At 2026-01-01 12:00 UTC in #general use /ask **bold**")
    assert message("custom_emoji").text == "so :yay: and :spin: 🎉"
    assert message("mention_role").text == "@belino wake up"
    assert message("mention_other").text == "@bo look"
    everybody = sample("guild_create")["d"]["roles"][0]["id"]
    far = [{"id": "77", "guild_id": "7", "type": 5, "name": "far away"}]
    said = message("text", content=f"<@&{everybody}> see <#77> and <#78>", mention_channels=far)
    assert said.text == "@everyone see #far away and <#78>"


@pytest.mark.parametrize(
    "text", ["<@1>", "<#1>", "<@&1>", "<t:99999999999999999999>", "<t:abc>", "<:a:>", "a < b", "<@"]
)
def test_what_names_nobody_we_know_stays_as_it_is(text: str) -> None:
    assert message("text", content=text).text == text


def test_threads_belong_to_their_channel_and_posts_to_their_forum() -> None:
    assert message("thread_message").conversation.channel == ROOM
    assert message("thread_message").conversation.thread == "1456271058272256000"
    assert message("forum_post").conversation.channel == FORUM
    assert message("thread_mention").channel_name == "general"


@pytest.mark.parametrize(
    ("name", "kind", "mime"),
    [
        ("image", MediaKind.IMAGE, "image/jpeg"),
        ("image_heic", MediaKind.IMAGE, "image/heic"),
        ("image_animated", MediaKind.IMAGE, "image/gif"),
        ("video", MediaKind.VIDEO, "video/mp4"),
        ("clip", MediaKind.VIDEO, "video/mp4"),
        ("audio", MediaKind.AUDIO, "audio/mpeg"),
        ("voice_message", MediaKind.VOICE, "audio/ogg"),
        ("document", MediaKind.DOCUMENT, "application/pdf"),
        ("text_file", MediaKind.DOCUMENT, "text/plain"),
        ("file_without_type", MediaKind.DOCUMENT, "application/octet-stream"),
        ("sparse", MediaKind.IMAGE, "image/png"),
        ("sticker_png", MediaKind.STICKER, "image/png"),
        ("sticker_apng", MediaKind.STICKER, "image/png"),
        ("sticker_lottie", MediaKind.STICKER, "application/json"),
        ("sticker_gif", MediaKind.STICKER, "image/gif"),
    ],
)
def test_every_sort_of_file_becomes_a_ref_of_its_kind(name: str, kind: MediaKind, mime: str) -> None:
    (ref,) = message(name).media
    assert (ref.kind, ref.mime) == (kind, mime)
    assert all("://" not in value for value in ref.locator.values())


def test_a_file_says_what_is_known_of_it() -> None:
    (picture,) = message("image").media
    assert (picture.file_name, picture.size, picture.width, picture.height) == ("harbour.jpg", 245112, 1280, 960)
    assert message("voice_message").media[0].duration == pytest.approx(6.42)
    assert message("image_described").media[0].caption == "A bar chart: 40 % came by boat"
    assert len({ref.item for ref in message("files_ten").media}) == 10


@pytest.mark.parametrize(
    ("filename", "title", "name"),
    [
        ("berblick_2026.pdf", "Überblick 2026", "Überblick 2026.pdf"),
        ("a_b.PNG", "a b.PNG", "a b.PNG"),
        ("README", "READ ME", "READ ME"),
        ("plain.txt", None, "plain.txt"),
        (None, "", None),
    ],
)
def test_a_file_has_the_name_somebody_gave_it(filename: str | None, title: str | None, name: str | None) -> None:
    file = {"id": "7", "filename": filename, "title": title}
    assert [ref.file_name for ref in message("text", attachments=[file]).media] == [name]


def test_a_reply_brings_the_files_of_what_it_answers_under_the_ids_they_came_with() -> None:
    reply, original = message("reply_image"), message("image")
    assert reply.quote is not None and reply.reply_to == original.id
    (quoted,), (came,) = reply.quote.media, original.media
    assert (quoted.message_id, quoted.item, quoted.locator) == (came.message_id, came.item, came.locator)
    assert (reply.quote.text, reply.quote.author and reply.quote.author.name) == ("The view", "Ada Lovelace")


def test_a_reply_to_what_is_gone_still_says_that_it_is_one() -> None:
    for name in ("reply_deleted", "reply_unresolved"):
        said = message(name)
        assert said.quote is not None and said.quote.message_id == said.reply_to and not said.quote.text


def test_a_forward_carries_words_and_files_and_nobody_who_said_them() -> None:
    said = message("forward_image")
    assert said.forward is not None and said.forward.author is None and said.reply_to is None
    (ref,) = said.forward.media
    assert (said.forward.text, ref.message_id, ref.channel_id) == ("The view", said.id, said.conversation.channel)
    assert message("forward_elsewhere").forward is not None


def test_a_forward_names_the_channel_it_comes_from_and_none_of_another_server() -> None:
    here = {"type": 1, "channel_id": ROOM, "message_id": "1456260000000000000"}
    home = sample("text")["d"]["guild_id"]
    named = message("forward_elsewhere", message_reference=here | {"guild_id": home}).forward
    strange = message("forward_elsewhere", message_reference=here | {"guild_id": "1456255000000000000"}).forward
    place = GUILDS.channels[ROOM]
    assert named is not None and named.author == Author(id=ROOM, name=f"#{place.name}")
    assert strange is not None and strange.author is None


def test_a_reply_to_a_forward_and_a_menu_command_bring_the_files_too() -> None:
    forward = sample("forward_image")["d"]
    reply = message("reply", referenced_message=forward | {"id": message("reply").reply_to})
    assert reply.quote is not None and reply.quote.text == "The view"
    (ref,) = reply.quote.media
    assert ref.locator == {
        "channel": forward["channel_id"],
        "message": reply.reply_to,
        "attachment": forward["message_snapshots"][0]["message"]["attachments"][0]["id"],
    }
    shown = sample("image")["d"]
    given = {"type": 3, "name": "Describe", "target_id": shown["id"], "resolved": {"messages": {shown["id"]: shown}}}
    command = message("menu_command", data=given)
    assert command.quote is not None and command.quote.author == message("image").author
    assert [ref.locator for ref in command.quote.media] == [ref.locator for ref in message("image").media]


def test_files_that_only_components_and_cards_show_are_refs_like_any_other() -> None:
    link = "https://cdn.discordapp.com/attachments/1/{}/{}?ex=1&is=1&hm=canary"
    gallery = {"media": {"url": link.format(7, "a%20b.png"), "attachment_id": "7", "width": 6}, "description": "seven"}
    sheet = {"type": 13, "file": {"url": link.format(8, "s.pdf"), "attachment_id": "8"}, "name": "s.pdf", "size": 12}
    inner = {"type": 9, "components": [], "accessory": {"type": 11, "media": {"url": link.format(9, "t.gif")}}}
    box = {"type": 17, "components": [{"type": 12, "items": [gallery]}, sheet, inner]}
    card = {"type": "rich", "title": "Card", "image": {"url": link.format(10, "c.webp")}}
    linked = {"type": "image", "url": link.format(11, "d.png"), "thumbnail": {"url": link.format(11, "d.png")}}
    said = message("text", content="", components=[box], embeds=[card, linked], attachments=[{"id": "7", "size": 5}])
    assert [(ref.item, ref.file_name, ref.mime, ref.size) for ref in said.media] == [
        ("7", None, "application/octet-stream", 5),
        ("8", "s.pdf", "application/pdf", 12),
        ("9", "t.gif", "image/gif", None),
        ("10", "c.webp", "image/webp", None),
    ]
    assert all(ref.locator["message"] == said.id for ref in said.media) and "canary" not in str(said)
    only = message("text", content="", components=[{"type": 12, "items": [gallery]}])
    assert [(ref.file_name, ref.width, ref.caption) for ref in only.media] == [("a b.png", 6, "seven")]


def test_cards_and_polls_are_told_as_text_and_links_without_their_query() -> None:
    assert message("embed_rich").text.splitlines() == [
        "Embed: Tides (https://example.org/tides)", "Today at the pier", "- High: 04:12", "- Low: 10:31",
        "without warranty", "- [image] (https://example.org/tides.png)",
    ]  # fmt: skip
    card = {"title": "Report", "url": "https://example.org/r?token=canary"}
    assert message("text", content="", embeds=[card]).text == "Embed: Report (https://example.org/r)"
    assert message("embed_gifv").text == "https://tenor.com/view/cat-123\nEmbed: Tenor"
    assert message("poll").text == "Poll: When do we leave?\n- 🌙 Friday\n- Saturday"
    assert message("poll_result").text == "Poll (closed): When do we leave?\n- Saturday (2 of 3 votes)"
    curve = "- [image] the curve (https://example.org/tides.png)"
    assert message("components_v2").text == f"# Tides\nHigh at 04:12\n{curve}"
    menu = {"type": 3, "placeholder": "Which pier?", "options": [{"label": "East"}, {"label": "West"}]}
    link = {"type": 2, "style": 5, "label": "Map", "url": "https://example.org/map?token=canary"}
    rows = [{"type": 1, "components": [menu]}, {"type": 1, "components": [link]}]
    chosen = "- [menu] Which pier? (East, West)\n- [button] Map (https://example.org/map)"
    assert message("text", content="", components=rows).text == chosen
    picture = {"type": "rich", "image": {"url": "https://example.org/p.png?key=canary", "content_type": "image/png"}}
    assert message("text", content="", embeds=[picture]).text == "Embed:\n- [image] (https://example.org/p.png)"


def test_what_somebody_typed_into_a_label_cannot_begin_a_line_of_ours() -> None:
    card = {"title": "a\nEmbed: b", "fields": [{"name": "x\ny", "value": "1\n2"}]}
    assert message("text", content="", embeds=[card]).text.splitlines() == ["Embed: a Embed: b", "- x y: 1 2"]


def test_bots_webhooks_and_ourselves_are_known_as_such() -> None:
    assert message("bot_message").author.is_bot
    hook = message("webhook_message").author
    assert (hook.id, hook.name, hook.is_bot) == ("1100000000000000400", "Deploys", True)
    own = message("own_message").author
    assert own.is_agent and own.id == BOT_ID


def test_an_edit_is_one_only_if_somebody_edited() -> None:
    changed = edit("edit_text")
    assert (changed.message_id, changed.text) == (message("text").id, "The ferry leaves at 9:40, not at 9:50!")
    assert changed.sent == datetime(2026, 1, 1, 13, 8, 2, 500000, tzinfo=UTC)
    assert [ref.file_name for ref in edit("edit_file_removed").media] == ["b.txt"]
    for name in ("update_unfurl", "update_partial", "update_pinned", "update_embeds_suppressed"):
        assert not is_news(sample(name))


def test_an_answer_another_bot_thought_about_is_read_when_it_is_there() -> None:
    raw = sample("command_answer")
    thinking = raw | {"d": raw["d"] | {"content": "", "embeds": [], "flags": 1 << 7}}
    there = raw | {"t": "MESSAGE_UPDATE", "d": raw["d"] | {"flags": 0}}
    assert not is_news(thinking) and is_news(there)
    assert parsed(there) == parsed(raw)
    edited = there | {"d": there["d"] | {"edited_timestamp": "2026-01-01T13:00:00+00:00"}}
    assert [arrival.kind for arrival in parsed(edited)] == ["edit"]


def test_roles_are_named_as_they_are_called_now() -> None:
    known = town()
    role = {"id": "55", "name": "crew"}
    for name in ("crew", "pilots"):
        known.learn({"t": "GUILD_ROLE_UPDATE", "d": {"guild_id": "1", "role": role | {"name": name}}})
        assert readable("<@&55>!", {}, known.channels, known.me) == f"@{name}!"


def test_what_only_one_person_sees_makes_no_private_place_of_a_channel() -> None:
    known = town()
    told = {"channel_id": "5", "id": "6"}
    assert known.unknown({"t": "MESSAGE_CREATE", "d": told | {"flags": 1 << 6}}) == "5" and "5" not in known.channels
    assert known.unknown({"t": "MESSAGE_CREATE", "d": told}) == "" and known.channels["5"].kind == 1


def test_the_same_edit_told_again_has_the_same_id_and_another_one_has_not() -> None:
    again = only("edit_text", embeds=[{"title": "a preview"}])
    assert again.id == edit("edit_text").id
    assert only("edit_text", edited_timestamp="2026-01-01T13:09:00+00:00").id != again.id


def test_deletions_come_one_by_one_or_many_at_once() -> None:
    (gone,) = parsed(sample("delete"))
    assert isinstance(gone, Deletion) and gone.author is None
    assert len({one.id for one in parsed(sample("delete_bulk"))}) == 3


def test_reactions_name_the_emoji_and_who_chose_it() -> None:
    fire = reaction("reaction")
    assert (fire.emoji, fire.added, fire.author.name) == ("🔥", True, "bo")
    assert reaction("reaction_custom").emoji == ":yay:"
    assert not reaction("reaction_removed").added
    assert reaction("reaction_dm").author.id == "1456255642107904000"


def test_the_same_reaction_in_another_session_is_another_one() -> None:
    raw = sample("reaction")
    ids = []
    for session in ("abc", "abc", "def"):
        known = DiscordParseContext(
            account="default", me=GUILDS.me, channels=GUILDS.channels, received=RECEIVED, session=session
        )
        (arrival,) = parse(raw, known)
        ids.append(arrival.id)
    assert ids[0] == ids[1] != ids[2]


def test_a_command_is_the_message_it_stands_for() -> None:
    assert message("slash_command").text == "/ask question: When does the ferry leave?"
    assert message("slash_command_group").text == "/belino memory clear sure: true"
    asked = message("slash_command_file")
    assert asked.text == "/ask question: What is this? file: harbour.jpg"
    assert asked.media[0].locator == {"path": f"ephemeral-attachments/{ROOM}/1456273825464320000/harbour.jpg"}
    assert message("slash_command_dm").chat_type is ChatType.DIRECT
    people = {"users": {"5": {"id": "5", "username": "bo"}}, "members": {"5": {"nick": "Bo P."}}}
    named = {**people, "roles": {"6": {"id": "6", "name": "crew"}}, "channels": {"7": {"id": "7", "name": "pier"}}}
    options = [{"name": name, "type": kind, "value": own} for name, kind, own in (("who", 6, "5"), ("in", 7, "7"))]
    options += [{"name": "for", "type": 9, "value": "6"}, {"name": "lost", "type": 8, "value": "8"}]
    told = message("slash_command", data={"type": 1, "name": "meet", "options": options, "resolved": named})
    assert told.text == "/meet who: @Bo P. in: #pier for: @crew lost: 8"
    assert message("slash_command", data={"type": 2, "name": "Who", "target_id": "5", "resolved": named}).text == (
        "/Who @Bo P."
    )
    typed = sample("slash_command")
    assert is_news(typed) and not is_news(typed | {"d": typed["d"] | {"type": 4}})
    quote = message("menu_command").quote
    assert quote is not None and quote.text == "The ferry leaves at 9:40, not at 9:50!"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("service_user_join", "Countess joined"),
        ("service_pin", "a message was pinned: message 1456271666446336000"),
        ("thread_created", "a thread was opened: Side talk"),
        ("thread_starter", "a thread was opened at a message"),
        ("unknown_type", "a message of the type 99"),
        ("button_press", "a button or menu of a message was used"),
        ("unknown_event", "an event of the kind guild teleport"),
    ],
)
def test_what_nobody_said_is_told_with_what_it_is(name: str, what: str) -> None:
    assert unsupported(name).what == what


def test_a_forward_of_which_nothing_is_shown_an_invitation_and_a_theme_are_told_as_such() -> None:
    hidden = [{"message": {"content": "", "attachments": [], "embeds": []}}]
    for snapshots in (hidden, [], None):
        told = only("forward_text", message_snapshots=snapshots)
        assert isinstance(told, Unsupported) and told.what == "a forwarded message, of which Discord shows nothing"
    invited = only("activity_invite", content="")
    assert isinstance(invited, Unsupported) and invited.what == "an invitation to Sea Quest"
    theme = only("text", content="", shared_client_theme={"colors": ["5865F2"]})
    assert isinstance(theme, Unsupported) and theme.what == "a theme for Discord"


def test_a_message_without_content_says_which_intent_may_be_missing() -> None:
    assert "message content intent" in unsupported("without_content_intent").what


def test_what_is_no_news_is_not_handed_in() -> None:
    quiet = {"ready", "guild_create", "typing", "channel_create", "thread_create", "thread_update", "poll_vote"}
    assert not [name for name in sorted(quiet) if is_news(sample(name))]
    assert is_news({"t": "SOMETHING_NEW", "d": {}})


def test_only_roles_made_for_this_bot_are_its_own() -> None:
    assert GUILDS.me.roles == {"1456255897960448001"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def _swapped(raw: Any, path: list[int], value: Any) -> Any:
    """The sample with something in it replaced."""
    if not path or not isinstance(raw, dict | list) or not raw:
        return value
    keys = sorted(raw) if isinstance(raw, dict) else list(range(len(raw)))
    key = keys[path[0] % len(keys)]
    changed = dict(raw) if isinstance(raw, dict) else list(raw)
    changed[key] = _swapped(raw[key], path[1:], value)
    return changed


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(NAMES), path=st.lists(st.integers(0, 40), min_size=1, max_size=5), value=ANYTHING)
def test_whatever_stands_in_an_event_it_is_read_or_said_to_be_unread(name: str, path: list[int], value: Any) -> None:
    raw = sample(name)
    raw["d"] = _swapped(raw["d"], path, value)
    arrivals = parsed(raw)
    assert arrivals
    for arrival in arrivals:
        assert ConversationKey.parse(str(arrival.conversation)) == arrival.conversation
        assert arrival.id and arrival.sent.tzinfo is UTC
        json.dumps(repr(arrival)).encode()
        if isinstance(arrival, Message):
            assert len({ref.item for ref in arrival.media}) == len(arrival.media)


@given(raw=ANYTHING)
def test_anything_at_all_is_said_to_be_unread(raw: Any) -> None:
    assert all(isinstance(arrival, Unsupported) for arrival in parsed(raw))
    assert isinstance(is_news(raw), bool)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"type": 1, "mentions": [{"id": "5", "username": "bob", "global_name": "Bob"}]}, "Bob was added"),
        ({"type": 2, "mentions": [{"id": "5", "username": "bob"}]}, "bob left"),
        ({"type": 4, "content": "the harbour"}, "the channel has a new name: the harbour"),
        ({"type": 6, "message_reference": None}, "a message was pinned"),
        ({"type": 31, "content": "Tides"}, "a stage has a new topic: Tides"),
    ],
)
def test_a_service_message_tells_its_content(changes: dict[str, Any], what: str) -> None:
    told = only("service_pin", **changes)
    assert isinstance(told, Unsupported) and told.what == what


def test_a_file_without_a_valid_id_is_named_and_not_blamed_on_an_intent() -> None:
    said = message("text", content="", attachments=[{"id": "att_1", "filename": "chart.png", "size": 7}])
    assert (said.text, said.media) == ("- [file] chart.png", ())


def test_an_attachment_has_an_id_of_its_bytes_and_a_link_in_a_card_has_none() -> None:
    given = {"id": "1456271666446336111", "filename": "a.png", "content_type": "image/png"}
    link = "https://cdn.discordapp.com/attachments/1/1456271666446336222/b.png"
    said = message("text", attachments=[given], embeds=[{"type": "rich", "image": {"url": link}}])
    assert [(ref.item, ref.file_id) for ref in said.media] == [
        (given["id"], given["id"]),
        ("1456271666446336222", None),
    ]
