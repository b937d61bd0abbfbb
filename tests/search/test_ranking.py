"""Ranking: a pure function of postings and query; no store is needed."""

import zlib
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from belino.domain.search import SearchIntent, SearchQuery
from belino.search.dates import micros
from belino.search.passages import PassageList, PassageSource, index_parts
from belino.search.postings import ChannelPostings
from belino.search.ranking import Ranking, rank, take_turns
from belino.search.segment import SegmentEntry
from belino.search.tokenizer import tokenize
from search.segments import HeldIndex

START = datetime(2023, 5, 1, 9, 0, tzinfo=UTC)
CHATTER = ["good morning", "the coffee is ready", "see you at lunch", "nice weather", "who has the minutes"]


class Documents:
    """The pages of one document that the message `seq` brought."""

    languages = ("english",)

    def __init__(self, *pages: str, seq: int = 1) -> None:
        self._pages = pages
        self._seq = seq

    def __len__(self) -> int:
        return len(self._pages)

    def find(self, numbers: Sequence[int]) -> PassageList:
        postings = index_parts(enumerate(self._pages, 1), number).postings
        return PassageList([(1, postings[term]) for term in numbers if term in postings])

    def sources(self, document: int) -> Sequence[PassageSource]:
        return [PassageSource(self._seq, "ref")]

    def unit(self, document: int) -> str:
        return "page"

    def text(self, document: int, number: int) -> str:
        return self._pages[number - 1]


def number(term: str) -> int:
    return zlib.crc32(term.encode())


def postings(*texts: str) -> ChannelPostings:
    made = ChannelPostings(number)
    for seq, text in enumerate(texts, 1):
        read = tokenize(text)
        terms = array("Q", map(number, read.terms))
        sent = micros(START + seq * timedelta(minutes=1))
        made.add(SegmentEntry(seq, sent, "u", "Ann", 0, read.flags, terms, 0, read.language))
    return made


def asked(text: str, **more: Any) -> SearchQuery:
    return SearchQuery(intents=(SearchIntent(text=text),), **more)


def ranked(index: ChannelPostings, query: SearchQuery, documents: Documents | None = None) -> Ranking:
    ranking = rank(index, documents or Documents(), query, query.intents[0])
    assert ranking is not None
    return ranking


def test_the_message_with_the_words_comes_first() -> None:
    ranking = ranked(postings("the harbor is closed", *CHATTER * 4), asked("harbor closed"))
    assert ranking.seqs[0] == 1
    assert ranking.matched[1] == ("harbor", "closed")
    assert [word.word for word in ranking.words] == ["harbor", "closed"]


def test_scores_belong_to_the_first_seqs_and_descend() -> None:
    ranking = ranked(postings(*["a harbor again"] * 300, *CHATTER), asked("harbor"))
    scores = list(ranking.scores.values())
    assert scores == sorted(scores, reverse=True)
    assert tuple(ranking.scores) == ranking.seqs[: len(scores)]
    assert 0 < len(scores) < len(ranking.seqs)


def test_since_and_until_bound_what_is_found() -> None:
    index = postings(*["harbor"] * 9)
    query = asked("harbor", since=START + timedelta(minutes=3), until=6)
    assert sorted(ranked(index, query).seqs) == [3, 4, 5, 6]
    nothing = asked("harbor", until=0)
    assert rank(index, Documents(), nothing, nothing.intents[0]) is None


def test_a_page_of_a_document_ranks_the_message_that_brought_it() -> None:
    documents = Documents("nothing here", "the keel of a harbor tug", seq=2)
    ranking = ranked(postings(*CHATTER * 4), asked("keel harbor"), documents)
    assert ranking.seqs[0] == 2
    assert (ranking.passages[2].ref, ranking.passages[2].number) == ("ref", 2)
    assert ranking.found_by_passage == {2}


def test_the_same_input_has_the_same_ranking_however_segments_are_cut() -> None:
    texts = [f"{text} {seq}" for seq, text in enumerate(CHATTER * 60)]
    whole, cut = postings(*texts), HeldIndex(number)
    for at, entry in enumerate(whole.tail.entries):
        cut.add(entry)
        if at % 70 == 69:
            cut.end_tail()
    query = asked("coffee minutes 123")
    assert ranked(cut.postings, query) == ranked(whole, query)
    cut.merge()
    assert ranked(cut.postings, query) == ranked(whole, query)


def threaded(*threads: Sequence[str]) -> ChannelPostings:
    """Threads one after the other; the first message of each is its root."""
    made = ChannelPostings(number)
    seq = 0
    for texts in threads:
        root = seq + 1
        for text in texts:
            seq += 1
            read = tokenize(text)
            sent = micros(START + seq * timedelta(minutes=1))
            terms = array("Q", map(number, read.terms))
            made.add(
                SegmentEntry(seq, sent, "u", "Ann", 0 if seq == root else root, read.flags, terms, 0, read.language)
            )
    return made


def test_a_long_thread_does_not_outrank_a_short_one_about_the_question() -> None:
    long = ["weekly report", *["the harbor", *["lunch"] * 9, "a crane", *["tea"] * 9] * 4]
    short = ["plans for the winter", "the harbor", "lunch", "tea", "a crane"]
    index = threaded(short, long, *[[f"topic {at}", "nothing", "to see"] for at in range(20)])
    assert ranked(index, asked("crane harbor")).seqs[0] <= len(short)


def test_the_best_message_of_each_thread_comes_before_its_others() -> None:
    index = threaded(*[["the harbor question", "harbor harbor", "the harbor again", "harbor?"]] * 6)
    best = ranked(index, asked("harbor")).seqs[:6]
    assert len({(seq - 1) // 4 for seq in best}) == 6


def test_a_message_is_found_or_nearby_and_without_either_the_newest_are_recent() -> None:
    index = postings(*CHATTER * 4, "where is the harbor?", "behind the hill", *CHATTER)
    ranking = ranked(index, asked("harbor"))
    assert ranking.seqs[0] == 21
    assert 21 not in ranking.nearby and 22 in ranking.nearby and ranking.recent == ()
    nothing = ranked(index, asked("xylophone"))
    assert (nothing.seqs, nothing.recent) == ((), (27, 26, 25))
    vague = ranked(index, asked("what is it?", limit=5))
    assert (vague.seqs, vague.recent) == ((), (27, 26, 25, 24, 23))


def test_rankings_take_turns_and_no_message_comes_twice() -> None:
    assert take_turns([[1, 2, 3], [2, 4], [5]]) == [(1, 0), (2, 1), (5, 2), (4, 1), (3, 0)]
    assert take_turns([[], [7]]) == [(7, 1)]


def talk(*lines: tuple[str, str]) -> ChannelPostings:
    """What people say, a minute apart."""
    made = ChannelPostings(number)
    for seq, (author, text) in enumerate(lines, 1):
        read = tokenize(text)
        sent = micros(START + seq * timedelta(minutes=1))
        terms = array("Q", map(number, read.terms))
        made.add(SegmentEntry(seq, sent, author, author, 0, read.flags, terms, 0, read.language))
    return made


def test_an_answer_in_several_messages_is_found_by_its_question() -> None:
    chatter = [("Ann" if at % 2 else "Bob", text) for at, text in enumerate(CHATTER * 4)]
    asked_and_answered = [
        *[("Ann", "wait"), ("Ann", "where is the harbor?")],
        *[("Bob", "well"), ("Bob", "you go past the mill"), ("Bob", "and then uphill to the left")],
    ]
    index = talk(*chatter, *asked_and_answered, *chatter)
    assert {22, 24, 25} <= set(ranked(index, asked("harbor")).seqs[:4])


def test_neighbours_count_less_the_more_people_talk() -> None:
    lines = [*CHATTER * 3, "where is the harbor?", "you go past the mill", *CHATTER * 3]
    two = talk(*[("Ann" if at % 2 else "Bob", text) for at, text in enumerate(lines)])
    many = talk(*[(f"P{at % 9}", text) for at, text in enumerate(lines)])
    near = {len(index.names): ranked(index, asked("harbor")).scores for index in (two, many)}
    assert near[2][17] > 5 > near[9].get(17, 0.0)


def test_an_answer_is_found_among_many_people_where_the_query_names_who_gave_it() -> None:
    chatter = [(f"P{at % 19}", text) for at, text in enumerate(CHATTER * 9)]
    elsewhere = [line for at in range(9) for line in (("Ann", f"how did you choose the pier {at}?"), *chatter[:2])]
    answered = [("Bob", "how did you choose the harbor?"), ("Ann", "my sister talked me into it")]
    index = talk(*chatter, *elsewhere, *answered, *chatter)
    first = len(chatter) + len(elsewhere) + 1
    assert first + 1 in ranked(index, asked("Why did Ann choose the harbor?")).seqs[:8]
    assert first + 1 not in ranked(index, asked("Why did someone choose the harbor?")).seqs[:8]


def test_a_message_that_says_little_is_no_answer() -> None:
    chatter = [("Ann" if at % 2 else "Bob", text) for at, text in enumerate(CHATTER * 4)]
    index = talk(*chatter, ("Ann", "where is the harbor?"), ("Bob", "Mm-hmm."), *chatter[::-1])
    ranking = ranked(index, asked("harbor"))
    assert ranking.seqs.index(22) > 1


def test_the_first_message_says_what_a_thread_is_about() -> None:
    about = ["the harbor crane", "how high is it", "taller than the mill"]
    aside = ["lunch today", "soup", "a view of the harbor crane, by the way"]
    filler = [[f"topic {at}", "nothing", "to see"] for at in range(20)]
    assert ranked(threaded(about, aside, *filler), asked("harbor crane")).seqs[0] <= 3


def test_words_that_follow_one_another_as_in_the_query_count_more() -> None:
    index = postings("the crane at the harbor", "harbor crane", "the harbor needs a crane", *CHATTER * 4)
    assert ranked(index, asked("harbor crane")).seqs[0] == 2


def test_words_that_frame_a_question_do_not_answer_it() -> None:
    texts = ["the team discussed it and the group agreed", "the harbor needs paint", *CHATTER * 4]
    assert ranked(postings(*texts), asked("Summarize what the team discussed about the harbor.")).seqs[0] == 2
    assert ranked(postings(*texts), asked("team discussed")).seqs[0] == 1
