// The lists of a message, with the content of each item: further lines, or a nested list.
import { make } from "./dom.js";
import { inline } from "./inline.js";

const ITEM = /^( {0,16})(?:([-*+])|(\d{1,9})[.)]) +(.*)$/;
const MORE = /^ {2,}(?!```|~~~|>|#{1,6} )(\S.*)$/;

export const startsItem = (line) => ITEM.test(line);

export function list(lines, at) {
  const first = itemOf(lines[at]);
  if (!first) return null;
  const node = make(first.tag, { dir: "auto", start: first.number === 1 ? null : first.number });
  for (let end = at; ; ) {
    const next = end + (lines[end]?.trim() === "" ? 1 : 0);
    const item = itemOf(lines[next]);
    const more = next === end && !item && MORE.exec(lines[end] ?? "");
    if (item && item.indent > first.indent + 1) {
      const [inner, taken] = list(lines, next);
      node.lastChild.append(inner);
      end = next + taken;
    } else if (item && item.indent >= first.indent && item.tag === first.tag) {
      node.append(make("li"));
      inline(node.lastChild, item.words);
      end = next + 1;
    } else if (more) {
      node.lastChild.append(make("br"));
      inline(node.lastChild, more[1]);
      end += 1;
    } else {
      return [node, end - at];
    }
  }
}

function itemOf(line = "") {
  const match = ITEM.exec(line);
  return match && { indent: match[1].length, tag: match[2] ? "ul" : "ol", number: match[2] ? null : Number(match[3]), words: match[4] };
}
