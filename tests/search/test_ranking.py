"""Ranking: a pure function of postings and query; no store is needed."""

import zlib
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from belino.domain.search import SearchQuery
from belino.search.dates import micros
from belino.search.passages import PassageList, PassageSource, index_parts
from belino.search.postings import ChannelPostings
from belino.search.ranking import Ranking, rank
from belino.search.segment import SegmentEntry
from belino.search.tokenizer import tokenize

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


def ranked(index: ChannelPostings, query: SearchQuery, documents: Documents | None = None) -> Ranking:
    ranking = rank(index, documents or Documents(), query)
    assert ranking is not None
    return ranking


def test_the_message_with_the_words_comes_first() -> None:
    ranking = ranked(postings("the harbor is closed", *CHATTER * 4), SearchQuery(text="harbor closed"))
    assert ranking.seqs[0] == 1
    assert ranking.matched[1] == ("harbor", "closed")
    assert [word.word for word in ranking.words] == ["harbor", "closed"]


def test_scores_belong_to_the_first_seqs_and_descend() -> None:
    ranking = ranked(postings(*["a harbor again"] * 300, *CHATTER), SearchQuery(text="harbor"))
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    assert 0 < len(ranking.scores) < len(ranking.seqs)


def test_since_and_until_bound_what_is_found() -> None:
    index = postings(*["harbor"] * 9)
    query = SearchQuery(text="harbor", since=START + timedelta(minutes=3), until=6)
    assert sorted(ranked(index, query).seqs) == [3, 4, 5, 6]
    assert rank(index, Documents(), SearchQuery(text="harbor", until=0)) is None


def test_a_page_of_a_document_ranks_the_message_that_brought_it() -> None:
    documents = Documents("nothing here", "the keel of a harbor tug", seq=2)
    ranking = ranked(postings(*CHATTER * 4), SearchQuery(text="keel harbor"), documents)
    assert ranking.seqs[0] == 2
    assert (ranking.passages[2].ref, ranking.passages[2].number) == ("ref", 2)
    assert ranking.found_by_passage == {2}


def test_the_same_input_has_the_same_ranking_however_segments_are_cut() -> None:
    texts = [f"{text} {seq}" for seq, text in enumerate(CHATTER * 60)]
    whole, cut = postings(*texts), ChannelPostings(number)
    for at, entry in enumerate(whole.tail):
        cut.add(entry)
        if at % 70 == 69:
            cut.end_tail()
    query = SearchQuery(text="coffee minutes 123")
    assert ranked(cut, query) == ranked(whole, query)
    cut.merge_segments()
    assert ranked(cut, query) == ranked(whole, query)
