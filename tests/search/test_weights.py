"""The table of weights: frozen, each with its unit, the corpora that it was fitted on, and its reason."""

import ast
import inspect
from dataclasses import FrozenInstanceError, fields

import pytest

from belino.search import weights
from belino.search.weights import FITTED, IRC, LOCOMO, QMSUM, WEIGHTS, ZULIP, Weights, WeightUnit


def test_every_constant_has_a_unit_and_the_corpora_that_it_was_fitted_on() -> None:
    for one in fields(Weights):
        assert isinstance(one.metadata["unit"], WeightUnit), one.name
        assert set(one.metadata["fitted_on"]) <= {LOCOMO, QMSUM, ZULIP, IRC}, one.name


def test_every_constant_has_its_reason() -> None:
    (table,) = [node for node in ast.parse(inspect.getsource(weights)).body if getattr(node, "name", "") == "Weights"]
    assert isinstance(table, ast.ClassDef)
    bare = [
        before.target.id
        for before, after in zip(table.body, [*table.body[1:], None], strict=True)
        if isinstance(before, ast.AnnAssign)
        and isinstance(before.target, ast.Name)
        and not isinstance(after, ast.Expr | ast.AnnAssign)
    ]
    assert bare == []


def test_the_table_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        WEIGHTS.coverage = 1.0  # type: ignore[misc]


def test_what_is_fitted_is_neither_a_limit_nor_in_the_index() -> None:
    assert {"coverage", "topic", "answer"} <= set(FITTED)
    assert not {"postings", "candidates", "k1", "b", "near"} & set(FITTED)
