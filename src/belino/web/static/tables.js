// The tables of a message: a header row, a row of dashes, and the rows below.
import { make } from "./dom.js";
import { inline } from "./inline.js";

const DASHES = /^(:?)-+(:?)$/;

export function startsTable(lines, at) {
  if (!lines[at].includes("|")) return false;
  const dashes = cells(lines[at + 1] ?? "");
  return dashes.length === cells(lines[at]).length && dashes.every((cell) => DASHES.test(cell));
}

export function table(lines, at) {
  if (!startsTable(lines, at)) return null;
  const sides = cells(lines[at + 1]).map(sideOf);
  let end = at + 2;
  while (lines[end]?.includes("|")) end += 1;
  const node = make("table", { dir: "auto" },
    make("thead", {}, row("th", lines[at], sides)),
    make("tbody", {}, ...lines.slice(at + 2, end).map((line) => row("td", line, sides))));
  return [make("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, node), end - at];
}

// Surplus cells stay in the last column: no text is lost.
function row(tag, line, sides) {
  const all = cells(line);
  const last = sides.length - 1;
  const words = [...all.slice(0, last), all.slice(last).join(" | ")];
  return make("tr", {}, ...sides.map((side, column) => {
    const cell = make(tag, { class: side, scope: tag === "th" ? "col" : null });
    inline(cell, words[column] ?? "");
    return cell;
  }));
}

// An escaped bar is a bar.
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
}

function sideOf(dashes) {
  const [, left, right] = DASHES.exec(dashes);
  return right ? (left ? "middle" : "end") : null;
}
