"""One sheet on its way to being a table: sparse while it is read, no larger than what fits when it is written."""

from dataclasses import dataclass, field

from belino.media.document.parts import HIDDEN_NOTE, Parts, hidden, table

HIDDEN_SHEET = "(hidden sheet)"
HIDDEN_ROW = "(hidden row)"
HIDDEN_COLUMN = "(hidden column)"
MARKED_NOTE = "hidden sheets, rows and columns are marked"


@dataclass(slots=True)
class Grid:
    """Rows go in from top to bottom; nothing is kept for cells that are empty."""

    parts: Parts
    title: str
    hidden_sheet: bool = False
    hidden_columns: set[int] = field(default_factory=set)
    extra: list[str] = field(default_factory=list)
    """What stands beside the cells: comments, text boxes."""
    _rows: list[tuple[int, dict[int, str]]] = field(default_factory=list)
    _columns: set[int] = field(default_factory=set)
    _chars: int = 0

    def row(self, number: int, cells: dict[int, str], *, hides: bool = False) -> bool:
        """Keep a row; False when there is no room for more."""
        if not cells:
            return True
        if hides:
            first = min(cells)
            cells[first] = f"{HIDDEN_ROW} {cells[first]}"
            self.parts.note(MARKED_NOTE)
        self._rows.append((number, cells))
        self._columns.update(cells)
        self._chars += sum(map(len, cells.values())) + 3 * len(cells)
        return self._chars <= self.parts.room

    def conceal(self, text: str) -> str:
        """A value that its format or colour hides."""
        self.parts.note(HIDDEN_NOTE)
        return hidden(text)

    def add_to(self, number: int) -> None:
        """Write the sheet as a part."""
        blocks = [self._table(), *self.extra]
        if self.hidden_sheet:
            blocks.insert(0, HIDDEN_SHEET)
            self.parts.note(MARKED_NOTE)
        self.parts.add(number, "\n\n".join(filter(None, blocks)), self.title)

    def _table(self) -> str:
        # Columns without a value would only cost tokens, and a sheet may be sixteen thousand of them wide.
        columns = sorted(self._columns)
        self._mark_columns()
        rows: list[list[str]] = []
        last = self._rows[0][0] if self._rows else 0
        for number, cells in self._rows:
            if number > last + 1:
                rows.append([])  # one empty row for any number of them
            rows.append([cells.get(column, "") for column in columns])
            last = number
        return table(rows)

    def _mark_columns(self) -> None:
        waiting = self.hidden_columns & self._columns
        for _, cells in self._rows:
            if not waiting:
                return
            for column in waiting & cells.keys():
                cells[column] = f"{HIDDEN_COLUMN} {cells[column]}"
                waiting = waiting - {column}
                self.parts.note(MARKED_NOTE)
