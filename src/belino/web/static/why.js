// The "why?" panel: what happened to one message, step by step, from the gateway's store.
import { call, query } from "./api.js";
import { byId, make } from "./dom.js";
import * as format from "./format.js";
import { manifest } from "./manifest.js";
import { told } from "./told.js";

const STAGES = {
  received: "Received", stored: "Stored", gate: "Access", turn: "Turn", tool: "Tool", media: "Media", reading: "Reading", reply: "Reply", delivery: "Delivery",
};
const BAD = new Set(["failed", "interrupted", "denied", "dead", "uncertain", "refused", "expired", "too large", "over daily limit", "not found", "unsupported"]);

export class Why {
  #dialog = byId("why");
  #body = byId("why-body");
  #asked = null;

  constructor() {
    byId("why-close").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("click", ({ target }) => target === this.#dialog && this.#dialog.close());
  }

  async open(message) {
    this.#asked = message.id;
    this.#body.replaceChildren(make("p", { class: "quiet", role: "status", text: "Loading…" }));
    this.#dialog.showModal();
    const parts = await story(message).catch((error) => [make("p", { class: "error", role: "alert", text: `belino could not load it: ${error.message}` })]);
    if (this.#asked === message.id) this.#body.replaceChildren(...parts.filter(Boolean));
  }
}

async function story(message) {
  const answer = await call("GET", `/api/explain?${query({ message: `${message.conversation}/${message.id}` })}`);
  const { steps } = answer;
  return [
    about(answer),
    section("Step by step", steps.length ? make("ol", { class: "steps" }, ...steps.map((one, at) => step(one, steps[at - 1]))) : null),
    section("Media", list(answer.media, mediaItem)),
    section("Readings", list([...(answer.readings ?? [])].reverse(), attempt)),
    section("Delivery", list(answer.parcels, parcel)),
    manifest(answer.session),
    answer.message.author.is_agent || answer.message.deleted ? null : told(message),
  ];
}

const section = (title, content) => content && make("section", {}, make("h3", { text: title }), content);
const list = (items, draw) => (items.length ? make("ul", { class: "facts" }, ...items.map(draw)) : null);
const outcomeOf = (text) => make("span", { class: BAD.has(text) ? "outcome bad" : "outcome", text: text.replaceAll("_", " ") });

function about({ outcome, trace, message }) {
  const facts = [["Outcome", outcome], ["Sent", format.fullTime(message.sent)], ["Trace", trace]];
  return make("dl", { class: "about" }, ...facts.map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: value }))));
}

function step({ at, stage, outcome, reason, subject }, before) {
  const after = before ? since(before.at, at) : "";
  return make("li", { "data-stage": stage, class: BAD.has(outcome) ? "bad" : "" },
    make("p", { class: "step-line" },
      make("strong", { text: STAGES[stage] ?? stage }),
      outcomeOf(outcome),
      make("time", { datetime: at, title: format.fullTime(at), text: format.preciseTime(at) }),
    ),
    subject ? make("p", { class: "step-subject" }, make("code", { text: subject })) : null,
    reason ? make("p", { class: "step-reason", text: reason }) : null,
    after ? make("p", { class: "step-after", text: after }) : null,
  );
}

function since(before, at) {
  const seconds = (new Date(at) - new Date(before)) / 1000;
  if (!(seconds >= 1)) return "";
  return seconds < 90 ? `${seconds.toFixed(1)} s later` : `${Math.round(seconds / 60)} min later`;
}

function mediaItem(item) {
  const name = item.file_name || item.kind;
  const facts = [item.mime, format.size(item.size), item.ref].filter(Boolean).join(" · ");
  return make("li", {}, make("p", { class: "step-line" }, make("strong", { text: name }), outcomeOf(item.outcome)),
    make("p", { class: "quiet", text: facts }), item.reason ? make("p", { class: "step-reason", text: item.reason }) : null);
}

// Which provider was tried, how it ended, how long it took, where the media went and what that cost.
function attempt({ ref, as, provider, model, outcome, reason, milliseconds, usd, sent_to: host, cached }) {
  const ran = cached ? ["stored text, nothing was sent"] : milliseconds ? [took(milliseconds), host ? `sent to ${host}` : "on this machine", cost(usd, host)] : [];
  const facts = [as, model, ...ran, ref].filter(Boolean).join(" · ");
  return make("li", {}, make("p", { class: "step-line" }, make("strong", { text: provider || "No provider" }), outcomeOf(outcome)),
    make("p", { class: "quiet", text: facts }), reason ? make("p", { class: "step-reason", text: reason }) : null);
}

const took = (milliseconds) => (milliseconds < 1000 ? `${milliseconds} ms` : `${(milliseconds / 1000).toFixed(1)} s`);
const cost = (usd, host) => (usd ? format.money(usd) : host && usd == null ? "price unknown" : "");

function parcel(item) {
  const facts = [item.attempts ? format.count(item.attempts, "attempt", "attempts") : "", item.key].filter(Boolean).join(" · ");
  return make("li", {}, make("p", { class: "step-line" }, make("strong", { text: item.kind }), outcomeOf(item.state)),
    make("p", { class: "quiet", text: facts }), item.reason ? make("p", { class: "step-reason", text: item.reason }) : null);
}
