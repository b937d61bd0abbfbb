"""Numbers and dates look as their format shows them."""

import pytest

from belino.readers.number_format import format_of, general, seen, shown

DAY = 45356.0
"""5 March 2024, a Tuesday."""


@pytest.mark.parametrize(
    ("value", "code", "told"),
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
        (0.5, "# ?/?", "1/2"),
        (3, "General", "3"),
        (DAY, "dd.mm.yyyy", "05.03.2024"),
        (DAY, "[$-409]dddd, mmmm d, yyyy", "Tuesday, March 5, 2024"),
        (DAY + 0.75, "m/d/yy h:mm AM/PM", "3/5/24 6:00 PM"),
        (DAY + 0.5, "yyyy-mm-dd hh:mm:ss", "2024-03-05 12:00:00"),
        (1.5, "[h]:mm", "36:00"),
        (0.0012, "mm:ss.0", "01:43.7"),
        (-1, "yyyy-mm-dd", "-1"),
        (1e300, "yyyy", "1e+300"),
        (60, "yyyy-mm-dd", "1900-02-28"),
        # Halves are rounded away from zero, by the digits that a person would see.
        (2.5, "0", "3"),
        (1.005, "0.00", "1.01"),
        (-0.125, "0.00", "-0.13"),
        (0.285, "0%", "29%"),
        (1e300, "0", "1" + "0" * 300),
        # Conditions, and what looks like a mark and is none.
        (1_234_567, '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "1.2M"),
        (12_345, '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "12.3K"),
        (-5, '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "-5"),
        (-5, "[Red][<0](0);0", "(5)"),
        (5, '0" a;b"', "5 a;b"),
        (5, 'General" kg"', "5 kg"),
        (-5, "General;@", "-5"),
        # Places between other signs.
        (5551234, "###-####", "555-1234"),
        (15551234567, "0(000)000-0000", "1(555)123-4567"),
        (7, "000-00-0000", "000-00-0007"),
        (1234, "# ##0", "1 234"),
        (5, "0,000", "0,005"),
        (0, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', "$-"),
        # Fractions and powers.
        (1.5, "# ?/?", "1 1/2"),
        (0.75, "# ?/8", "6/8"),
        (1.9999, "# ?/?", "2"),
        (1.5, "?/?", "3/2"),
        (1e300, "# ?/?", "1e+300"),
        (12345, "##0.0E+0", "12.3E+3"),
        (999.96, "0.0E+0", "1.0E+3"),
        (0.00012, "0.0E-0", "1.2E-4"),
        # Times, and days as they are counted in Japan.
        (0.00069519, "mm:ss.000", "01:00.064"),
        (0.999999999, "[h]:mm", "24:00"),
        (DAY + 0.75, "h A/P", "6 P"),
        (DAY, '[$-411]ggge"年"m"月"d"日"', "令和6年3月5日"),
        (DAY, "m/d(aaa)", "3/5(火)"),
        (DAY, '[>100]yyyy;"none"', "2024"),
    ],
)
def test_a_value_is_shown_by_its_format(value: float, code: str, told: str) -> None:
    assert shown(value, format_of(164, code)) == told


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


@pytest.mark.parametrize(
    ("number", "value", "told"),
    [(5, -1234.5, "(1,235)"), (12, 1.5, "1 1/2"), (38, -12, "(12)"), (44, 0, "-"), (31, DAY, "2024-03-05")],
)
def test_formats_that_a_file_only_names_are_known(number: int, value: float, told: str) -> None:
    assert shown(value, format_of(number, None)) == told


def test_a_format_may_hide() -> None:
    assert format_of(164, ";;;").hides
    assert seen(7, format_of(164, ";;;@")) == ("7", True)
    assert not format_of(164, ";;;@").hides
    assert seen(0, format_of(164, "0;-0;;@")) == ("", False)
    assert seen(5, format_of(164, "0;-0;;@")) == ("5", False)
