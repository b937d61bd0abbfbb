"""Passages: the parts of documents, indexed whole."""

from belino.search import passages, tokenizer


def test_pieces_of_a_text_without_blanks_lose_nothing() -> None:
    text = "字" * 10_000
    pieces = list(passages._pieces(text))
    assert "".join(pieces) == text
    assert all(len(tokenizer.tokenize(piece).terms) < 2 * tokenizer.TERMS_AT_MOST for piece in pieces)
