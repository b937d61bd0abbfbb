// Converts a message's light Markdown into nodes: no HTML is ever parsed and no picture is ever loaded from it.
// Each block has its own direction: an answer may quote a right-to-left language.
import { make } from "./dom.js";
import { inline, inlineLines } from "./inline.js";
import { list, startsItem } from "./lists.js";
import { startsTable, table } from "./tables.js";

const FENCE = /^ {0,16}(```+|~~~+)\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^(#{1,6}) +(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/;

// Lines are consumed from the front; each block reader returns how many it took.
export function render(text) {
  const fragment = document.createDocumentFragment();
  const lines = text.split(/\r\n|\r|\n/);
  for (let at = 0; at < lines.length; ) {
    const [node, taken] = fence(lines, at) ?? rule(lines, at) ?? list(lines, at) ?? quote(lines, at) ?? heading(lines, at) ?? table(lines, at) ?? paragraph(lines, at);
    if (node) fragment.append(node);
    at += taken;
  }
  return fragment;
}

function fence(lines, at) {
  const opening = FENCE.exec(lines[at]);
  if (!opening) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(opening[1])) end += 1;
  const indent = new RegExp(`^ {0,${lines[at].search(/\S/)}}`);
  const written = lines.slice(at + 1, end).map((line) => line.replace(indent, ""));
  const code = make("code", { text: written.join("\n"), "data-language": opening[2] || null });
  const pre = make("pre", { tabindex: 0, role: "group", "aria-label": "Code" }, code);
  return [pre, end - at + 1];
}

const rule = (lines, at) => (RULE.test(lines[at]) ? [make("hr"), 1] : null);

function quote(lines, at) {
  if (!QUOTE.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const node = make("blockquote", { dir: "auto" });
  inlineLines(node, lines.slice(at, end).map((line) => QUOTE.exec(line)[1]));
  return [node, end - at];
}

// Headings of a message are not headings of the page.
function heading(lines, at) {
  const match = HEADING.exec(lines[at]);
  if (!match) return null;
  const node = make("p", { class: "heading", dir: "auto" });
  inline(node, match[2]);
  return [node, 1];
}

const startsBlock = (lines, at) =>
  [FENCE, RULE, QUOTE, HEADING].some((start) => start.test(lines[at])) || startsItem(lines[at]) || startsTable(lines, at);

function paragraph(lines, at) {
  if (lines[at].trim() === "") return [null, 1];
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !startsBlock(lines, end)) end += 1;
  const node = make("p", { dir: "auto" });
  inlineLines(node, lines.slice(at, end));
  return [node, end - at];
}
