// The agent's context when a session begins with a message: verbatim, with the price of each part.
import { call, query } from "./api.js";
import { make } from "./dom.js";
import * as format from "./format.js";

// Loaded when opened: most people only want to know what happened.
export function told({ conversation, id }) {
  const body = make("div", { class: "told-body" }, make("p", { class: "quiet", role: "status", text: "Loading…" }));
  const details = make("details", { class: "told" }, make("summary", { text: "The agent's context" }), body);
  details.addEventListener("toggle", () => fill(body, conversation, id), { once: true });
  return details;
}

async function fill(body, conversation, id) {
  try {
    body.replaceChildren(...drawn(await call("GET", `/api/context?${query({ conversation, at: id })}`)));
  } catch (error) {
    body.replaceChildren(make("p", { class: "error", role: "alert", text: `belino could not load it: ${error.message}` }));
  }
}

function drawn({ tokens, parts, told: texts, note, session }) {
  const price = parts.map(({ part, tokens: cost }) => `${part} ${cost}`).join(" · ");
  const left = [...parts.flatMap(({ why }) => why), note].filter(Boolean);
  return [
    make("p", { text: `A session that begins with this message gets ${format.count(tokens, "token", "tokens")} of context.` }),
    make("p", { class: "quiet", text: price }),
    session.has_context ? make("p", { class: "quiet", text: "The current session already has the context of its channel and gets only what is new." }) : null,
    left.length ? make("ul", { class: "facts" }, ...left.map((text) => make("li", { text }))) : null,
    ...texts.map((text) => make("pre", { text, tabindex: "0" })),
  ].filter(Boolean);
}
