// Inline Markdown: emphasis, code, links and bare addresses, as nodes.
import { make } from "./dom.js";
import { anchorTo } from "./links.js";

const URL_START = /https?:\/\//gi;
const DEEPEST = 4;

export function inlineLines(node, lines) {
  lines.forEach((line, index) => {
    if (index) node.append(make("br"));
    inline(node, line);
  });
}

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "s"], ["*", "em"], ["_", "em"]];

// One pass over the text. A closing mark that is missing once is not searched again, so the pass is linear.
export function inline(parent, text, depth = 0) {
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

// Plain text, with addresses as links.
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
