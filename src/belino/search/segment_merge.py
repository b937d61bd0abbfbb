"""Segment merge: several consecutive segments as one, with the edits of their messages applied."""

import heapq
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise, repeat
from operator import itemgetter
from typing import NamedTuple

from belino.search.segment import Begun, Sections, SegmentArrays, add_grams, empty_sections, thread_group


def merge(segments: Sequence[SegmentArrays]) -> SegmentArrays:
    """Merge consecutive segments, with the same result as `build` from all their messages, edits included.

    It works on the arrays: entries of long segments would take several times their memory.
    """
    sections = empty_sections()
    people: dict[tuple[str, str], int] = {}
    languages: dict[str, int] = {}
    parts = list(_parts(segments))
    numbers = _merge_postings(parts, sections)
    sections["offsets"].append(0)
    for segment in segments:
        own_people = [people.setdefault(person, len(people)) for person in segment.people]
        own_languages = [languages.setdefault(language, len(languages)) for language in segment.languages]
        for name in ("seqs", "sents", "flags", "captions", "groups", "before", "after"):
            sections[name] += segment.sections[name]
        sections["authors"].extend(map(own_people.__getitem__, segment.authors))
        sections["spoken"].extend(map(own_languages.__getitem__, segment.spoken))
    for part, number in zip(parts, numbers, strict=True):
        if part.of is None:
            _add_forward(sections, part.arrays, number)
    for part, number in zip(parts, numbers, strict=True):
        if part.of is not None:
            _put_forward(sections, part, number)
    _link_across(sections, segments)
    _merge_spellings(parts, numbers, sections)
    begun = Begun(*(sum(counts) for counts in zip(*(segment.begun for segment in segments), strict=True)))
    return SegmentArrays(sections, list(people), list(languages), begun)


class _Part(NamedTuple):
    """Arrays that are merged, and the places of their messages: from `base` on, or those of edits `of` a segment."""

    arrays: SegmentArrays
    base: int
    of: "array[int] | None"


def _parts(segments: Sequence[SegmentArrays]) -> Iterator[_Part]:
    bases = accumulate(map(len, segments), initial=0)
    for segment, base in zip(segments, bases, strict=False):
        yield _Part(segment, base, None)
        if segment.edits is not None:
            yield _Part(segment.edits.arrays, base, segment.edits.docs)


def _merge_postings(parts: Sequence[_Part], sections: Sections) -> list["array[int]"]:
    """Merge vocabularies and postings; returns the new place of each part's terms."""
    vocabulary, starts, counts = sections["vocabulary"], sections["starts"], sections["counts"]
    docs, weights = sections["docs"], sections["impacts"]
    numbers = [array("I", bytes(4 * len(part.arrays.vocabulary))) for part in parts]
    ordered = heapq.merge(*(_living_terms(part.arrays, at) for at, part in enumerate(parts)))
    for term, of_term in groupby(ordered, itemgetter(0)):
        begin, edited = len(docs), False
        for _, at, local in of_term:
            arrays, base, of = parts[at]
            numbers[at][local] = len(vocabulary)
            start = arrays.starts[local]
            end = start + arrays.counts[local]
            places = arrays.docs[start:end]
            docs.extend(map(base.__add__, places if of is None else map(of.__getitem__, places)))
            weights += arrays.impacts[start:end]
            edited |= of is not None
        if edited:
            found = sorted(zip(docs[begin:], weights[begin:], strict=True))
            docs[begin:] = array("I", [doc for doc, _ in found])
            weights[begin:] = array("B", [weight for _, weight in found])
        vocabulary.append(term)
        starts.append(begin)
        counts.append(len(docs) - begin)
    return numbers


def _living_terms(arrays: SegmentArrays, at: int) -> Iterator[tuple[int, int, int]]:
    """The terms that messages still have, as (term, at, place in the vocabulary)."""
    if 0 not in arrays.counts:
        return zip(arrays.vocabulary, repeat(at), range(len(arrays.vocabulary)))
    return ((term, at, local) for local, term in enumerate(arrays.vocabulary) if arrays.counts[local])


def _add_forward(sections: Sections, arrays: SegmentArrays, number: "array[int]") -> None:
    offsets = sections["offsets"]
    offsets.extend(map(offsets[-1].__add__, arrays.offsets[1:]))
    sections["forward"].extend(map(number.__getitem__, arrays.forward))


def _put_forward(sections: Sections, part: _Part, number: "array[int]") -> None:
    """Put the terms of edited messages in their places, which are empty."""
    forward, offsets = sections["forward"], sections["offsets"]
    said = {part.base + doc: at for at, doc in enumerate(part.of or ())}
    lengths = [end - begin for begin, end in pairwise(offsets)]
    pieces, past = array("I"), 0
    for place, at in sorted(said.items()):
        own = part.arrays.forward[part.arrays.offsets[at] : part.arrays.offsets[at + 1]]
        pieces += forward[past : offsets[place]]
        pieces.extend(map(number.__getitem__, own))
        past = offsets[place]
        lengths[place] = len(own)
    sections["forward"] = pieces + forward[past:]
    sections["offsets"] = array("I", accumulate(lengths, initial=0))


def _link_across(sections: Sections, segments: Sequence[SegmentArrays]) -> None:
    """Let the last message of a thread or session know the next one in a later segment."""
    seqs, groups, after = sections["seqs"], sections["groups"], sections["after"]
    base = 0
    for segment in segments:
        for doc, back in enumerate(segment.before):
            if back > doc and base + doc >= back:
                previous = base + doc - back
                # The first message of a thread is not in its group, and goes on in its own session.
                if groups[base + doc] != thread_group(seqs[previous]):
                    after[previous] = back
        base += len(segment)


def _merge_spellings(parts: Sequence[_Part], numbers: Sequence["array[int]"], sections: Sections) -> None:
    """Merge the trigrams of the terms. A term that several segments have has the same ones in each."""
    spelled = sections["spelled"]
    spelled.frombytes(bytes(len(sections["vocabulary"])))
    lists: dict[int, set[int]] = {}
    for (arrays, _, _), number in zip(parts, numbers, strict=True):
        for at, length, count in zip(number, arrays.spelled, arrays.counts, strict=True):
            if count:
                spelled[at] = length
        for gram, start, count in zip(arrays.grams, arrays.gram_starts, arrays.gram_counts, strict=True):
            terms = arrays.gram_terms[start : start + count]
            lists.setdefault(gram, set()).update(map(number.__getitem__, terms))
    add_grams(sections, {gram: terms for gram, terms in lists.items() if terms})
