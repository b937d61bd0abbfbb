"""Near a message: what it answers is found by who talks with whom, and when, whatever words they share."""

from pathlib import Path

from search.told import CHATTER, told

LINES = [
    *CHATTER[:20],
    ("Ann", "does the ferry run on Sundays?"),  # 21
    ("Boris", "lunch at noon?"),
    ("Chioma", "I can not print since the update"),  # 23
    ("Boris", "Chioma: which printer?"),  # 24
    ("Dora", "noon is fine"),  # 25
    ("Ann", "or is it Saturdays only"),
    ("Chioma", "Boris: the one by the stairs"),  # 27
    *CHATTER[20:],
]


async def test_what_a_message_answers_is_found_by_nearness_and_address(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        assert (await here.ids("what is this an answer to", near="27"))[0] == "24"
        assert "22" in (await here.ids("what is this an answer to", near="25"))[:4]
        assert "24" not in (await here.ids("what is this an answer to"))[:3]


async def test_the_message_itself_is_not_among_what_is_near(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        page = await here.find("the one by the stairs", near="27")
        assert "27" not in [one.message_id for one in page.results]


async def test_words_still_count_near_a_message(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        (ferry,) = [one for one in (await here.find("ferry", near="27", limit=3)).results if one.kind == "found"]
        assert (ferry.message_id, ferry.relevance_signal) == ("21", "keyword:ferry")


async def test_what_is_near_has_none_of_the_words_and_says_so(tmp_path: Path) -> None:
    async with told(tmp_path, LINES) as here:
        kinds = {one.message_id: one.kind for one in (await here.find("zyzzyva", near="27")).results}
        assert kinds and set(kinds.values()) == {"nearby"}
