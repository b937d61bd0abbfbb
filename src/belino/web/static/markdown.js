// Turns the light Markdown of a message into nodes: no HTML is ever parsed and no picture is ever loaded from it.
import { make } from "./dom.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)[^`]*$/;
const ITEM = /^ {0,8}(?:([-*+])|(\d{1,9})[.)]) +(.*)$/;
const HEADING = /^(#{1,6}) +(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const URL_START = /https?:\/\//gi;
const DEEPEST = 4;

// Lines are consumed from the front; each block reader returns how many it took.
export function render(text) {
  const fragment = document.createDocumentFragment();
  const lines = text.split(/\r\n|\r|\n/);
  for (let at = 0; at < lines.length; ) {
    const [node, taken] = fence(lines, at) ?? list(lines, at) ?? quote(lines, at) ?? heading(lines, at) ?? paragraph(lines, at);
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
  const code = make("code", { text: lines.slice(at + 1, end).join("\n"), "data-language": opening[2] || null });
  const pre = make("pre", { tabindex: 0, role: "region", "aria-label": "Code" }, code);
  return [pre, end - at + 1];
}

function list(lines, at) {
  const first = ITEM.exec(lines[at]);
  if (!first) return null;
  const numbered = first[1] === undefined;
  const node = make(numbered ? "ol" : "ul", numbered && first[2] !== "1" ? { start: Number(first[2]) } : {});
  let end = at;
  for (let item = first; item && (item[1] === undefined) === numbered; item = ITEM.exec(lines[++end] ?? "")) {
    const words = make("li");
    inline(words, item[3], 0);
    node.append(words);
  }
  return [node, end - at];
}

function quote(lines, at) {
  if (!QUOTE.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const node = make("blockquote");
  inlineLines(node, lines.slice(at, end).map((line) => QUOTE.exec(line)[1]));
  return [node, end - at];
}

// Headings of a message are not headings of the page.
function heading(lines, at) {
  const match = HEADING.exec(lines[at]);
  if (!match) return null;
  const node = make("p", { class: "heading" });
  inline(node, match[2], 0);
  return [node, 1];
}

const startsBlock = (line) => FENCE.test(line) || ITEM.test(line) || QUOTE.test(line) || HEADING.test(line);

function paragraph(lines, at) {
  if (lines[at].trim() === "") return [null, 1];
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !startsBlock(lines[end])) end += 1;
  const node = make("p");
  inlineLines(node, lines.slice(at, end));
  return [node, end - at];
}

function inlineLines(node, lines) {
  lines.forEach((line, index) => {
    if (index) node.append(make("br"));
    inline(node, line, 0);
  });
}

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "s"], ["*", "em"], ["_", "em"]];

// One walk over the text. A closing mark that was missed once is not looked for again, so the walk stays linear.
function inline(parent, text, depth) {
  const missing = new Set();
  let plain = 0;
  const flush = (end) => end > plain && bare(parent, text.slice(plain, end), depth);
  for (let at = 0; at < text.length; ) {
    const found = code(text, at, missing) ?? image(text, at) ?? link(text, at, depth) ?? marked(text, at, depth, missing);
    if (!found) {
      at += 1;
      continue;
    }
    flush(at);
    parent.append(found[0]);
    at += found[1];
    plain = at;
  }
  flush(text.length);
}

function code(text, at, missing) {
  if (text[at] !== "`" || missing.has("`")) return null;
  const end = text.indexOf("`", at + 1);
  if (end < 0) missing.add("`");
  return end > at + 1 ? [make("code", { text: text.slice(at + 1, end) }), end - at + 1] : null;
}

const TARGET = /!?\[([^\][]{0,500})\]\(([^()\s]{1,2000})\)/y;

function targetAt(text, at) {
  TARGET.lastIndex = at;
  return TARGET.exec(text);
}

function image(text, at) {
  if (text[at] !== "!") return null;
  const match = targetAt(text, at);
  return match && [document.createTextNode(match[0]), match[0].length];
}

function link(text, at, depth) {
  if (text[at] !== "[" || depth >= DEEPEST) return null;
  const match = targetAt(text, at);
  const anchor = match && anchorTo(match[2], match[1] || match[2]);
  return anchor && [anchor, match[0].length];
}

function marked(text, at, depth, missing) {
  if (depth >= DEEPEST) return null;
  for (const [mark, tag] of MARKS) {
    if (!text.startsWith(mark, at) || missing.has(mark) || !opens(text, at, mark)) continue;
    const end = closing(text, at + mark.length, mark);
    if (end < 0) {
      missing.add(mark);
      continue;
    }
    const node = make(tag);
    inline(node, text.slice(at + mark.length, end), depth + 1);
    return [node, end + mark.length - at];
  }
  return null;
}

const word = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);
const space = (character) => character === undefined || /\s/.test(character);

// file_name_with_lines and 2*3*4 are not emphasis.
function opens(text, at, mark) {
  return !word(text[at - 1]) && text[at - 1] !== mark[0] && !space(text[at + mark.length]) && text[at + mark.length] !== mark[0];
}

function closing(text, from, mark) {
  for (let end = text.indexOf(mark, from + 1); end >= 0; end = text.indexOf(mark, end + mark.length)) {
    const next = text[end + mark.length];
    if (!space(text[end - 1]) && !word(next) && (mark.length > 1 || (next !== mark && text[end - 1] !== mark))) return end;
  }
  return -1;
}

// Plain text, with addresses made into links.
function bare(parent, text, depth) {
  let from = 0;
  if (depth < DEEPEST) {
    for (const { index } of text.matchAll(URL_START)) {
      if (index < from) continue;
      const address = /^[^\s<>"'`]{1,2000}/.exec(text.slice(index, index + 2000))[0].replace(/[.,;:!?)\]]+$/, "");
      const anchor = anchorTo(address, address);
      if (!anchor) continue;
      parent.append(text.slice(from, index), anchor);
      from = index + address.length;
    }
  }
  parent.append(text.slice(from));
}

function anchorTo(address, words) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  return make("a", { href: address, text: words, target: "_blank", rel: "noopener noreferrer" });
}
