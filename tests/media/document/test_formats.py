"""Numbers and dates look as their format shows them."""

import pytest

from belino.media.document.formats import format_of, general, shown

DAY = 45356.0
"""5 March 2024, a Tuesday."""


@pytest.mark.parametrize(
    ("value", "code", "seen"),
    [
        (0.1234, "0.00%", "12.34%"),
        (1234.5, "#,##0.00", "1,234.50"),
        (-1234.5, "#,##0.00;[Red](#,##0.00)", "(1,234.50)"),
        (-5, "0.00", "-5.00"),
        (1234567, '#,##0,"k"', "1,235k"),
        (0, '0;-0;"none"', "none"),
        (5, "00000", "00005"),
        (3, "#.##", "3"),
        (12.5, "[$€-407] #,##0.00", "€ 12.50"),
        (12.5, '_-* #,##0.00\\ "€"_-', "12.50 €"),
        (17, '0" of 10"', "17 of 10"),
        (1234.5, "0.00E+00", "1.23E+03"),
        (0.5, "# ?/?", "0.5"),
        (3, "General", "3"),
        (DAY, "dd.mm.yyyy", "05.03.2024"),
        (DAY, "[$-409]dddd, mmmm d, yyyy", "Tuesday, March 5, 2024"),
        (DAY + 0.75, "m/d/yy h:mm AM/PM", "3/5/24 6:00 PM"),
        (DAY + 0.5, "yyyy-mm-dd hh:mm:ss", "2024-03-05 12:00:00"),
        (1.5, "[h]:mm", "36:00"),
        (0.0012, "mm:ss.0", "01:43.6"),
        (-1, "yyyy-mm-dd", "-1"),
        (1e300, "yyyy", "1e+300"),
        (60, "yyyy-mm-dd", "1900-02-28"),
    ],
)
def test_a_value_is_shown_by_its_format(value: float, code: str, seen: str) -> None:
    assert shown(value, format_of(164, code)) == seen


def test_short_dates_are_written_so_that_no_country_misreads_them() -> None:
    assert shown(DAY, format_of(14, None)) == "2024-03-05"


def test_a_workbook_may_count_days_from_1904() -> None:
    assert shown(DAY - 1462, format_of(14, None), since_1904=True) == "2024-03-05"


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (0.1 + 0.2, "0.3"),
        (2.0, "2"),
        (1234567890123450.0, "1234567890123450"),
        (1e20, "1e+20"),
        (float("nan"), "nan"),
        (-0.5, "-0.5"),
    ],
)
def test_a_value_without_a_format_has_no_more_digits_than_it_needs(value: float, seen: str) -> None:
    assert general(value) == seen


def test_a_format_may_hide() -> None:
    assert format_of(164, ";;;").hides
