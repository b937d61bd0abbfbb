"""Text of a video: its subtitles where it has some, else what is written in its frames."""

from belino.domain.reading import Read, ReadingForm, Skill
from media.videos import subtitled, video
from understanding.reading_house import ReadingHouse
from understanding.scripted import Script, Shelf


def lens(shelf: Shelf) -> Script:
    return shelf.add("local_lens", Skill.READ_TEXT, answer=lambda call: Read(text="a slide", model="m"))


async def test_the_subtitles_of_a_video_are_its_text_and_no_frame_is_read(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(subtitled("matroska"), "video/x-matroska", name="talk.mkv")
    read = await house.item(understanding, record, ReadingForm.TEXT)
    assert read.text == "[0:00] Hello there\n[0:01] second line"
    assert (read.provider, len(script.calls)) == ("belino", 0)


async def test_between_two_times_the_frames_of_a_video_are_read_all_the_same(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(subtitled(), "video/mp4", name="talk.mp4")
    read = await house.item(understanding, record, ReadingForm.TEXT, times=(0.0, 1.0))
    assert "a slide" in read.text and script.calls


async def test_without_subtitles_the_frames_of_a_video_are_read(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(video(20), "video/mp4", name="talk.mp4")
    assert "a slide" in (await house.item(understanding, record, ReadingForm.TEXT)).text and script.calls


async def test_subtitles_need_no_provider(house: ReadingHouse, shelf: Shelf) -> None:
    record = await house.send(subtitled(), "video/mp4", name="talk.mp4")
    read = await house.item(house.understanding(), record, ReadingForm.TEXT)
    assert "[0:01] second line" in read.text
