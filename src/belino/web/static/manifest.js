// The manifest: the media that a session's agent was shown, what its memory lost, and what it is given again.
import { make } from "./dom.js";
import * as format from "./format.js";

const MOST = 100;
const KEYS = { artifact_id: "Ref", media_type: "Type", included_at_turn: "Turn", source_message_id: "Message", source_thread_id: "Thread", content_hash: "SHA-256" };

export function manifest({ manifest: records, lost, reattach, compacted }) {
  if (!records.length) return null;
  const names = new Map(records.map((record) => [record.artifact_id, record.display_name]));
  const newest = records.slice(-MOST).reverse();
  const older = records.length - newest.length;
  return make("details", { class: "told" }, make("summary", { text: `Media shown to the agent (${format.number(records.length)})` }),
    make("div", { class: "told-body" },
      make("p", { class: "quiet", text: again(reattach.map((ref) => `${format.name(names.get(ref))} (${ref})`), compacted) }),
      make("ul", { class: "facts" }, ...newest.map((record) => item(record, lost.includes(record.artifact_id)))),
      older ? make("p", { class: "quiet", text: `and ${format.count(older, "older one", "older ones")}` }) : null));
}

function item(record, isLost) {
  const facts = Object.entries(KEYS).filter(([key]) => record[key] != null);
  return make("li", {},
    make("p", { class: "step-line" }, make("strong", { text: format.name(record.display_name) }), make("span", { class: isLost ? "quiet" : "outcome", text: isLost ? "lost from its memory" : "in its memory" })),
    make("dl", { class: "about quiet" }, ...facts.map(([key, name]) => make("div", {}, make("dt", { text: name }), make("dd", { text: record[key] })))));
}

function again(items, compacted) {
  if (!items.length) return "Nothing is attached again when its memory is shortened.";
  return `${compacted ? "Its memory was shortened, and its next turn attaches again" : "If its memory is shortened, its next turn attaches again"}: ${items.join(", ")}.`;
}
