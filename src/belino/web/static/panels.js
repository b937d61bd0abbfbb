// Draws what was read from one media item: text, progress, failure with retry, and buttons for what can be requested.
import { button, make, say, show, spoken } from "./dom.js";
import * as format from "./format.js";
import { nameOf } from "./names.js";
import { transcript } from "./transcript.js";

export const TITLES = { transcript: "Transcript", description: "Description", text: "Text" };
const ASK = { transcript: "Transcribe", description: "Describe", text: "Read the text" };
const BUSY = { transcript: "Transcribing", description: "Describing", text: "Reading the text" };
const NOTHING = { transcript: "No speech was heard.", description: "There is nothing to describe.", text: "There is no text in it." };
// Line breaks count as well: a receipt is short and tall.
const FOLD_CHARS = 500;
const FOLD_LINES = 8;
const FOLD_SEGMENTS = 6;
const FOLD_SEGMENT_CHARS = 240;

export class Panel {
  node = make("div", { class: "readings", "aria-live": "off", hidden: true });
  #item;
  #offers;
  #player;
  #ask;
  #asked = new Set();
  #unfolded = new Set();
  #named;
  #scanned = false;
  #known = [{}, {}];
  #sections = new Map();
  #asks = make("p", { class: "reading-asks" });

  // `named`: the title names the item, one of several above it.
  constructor({ item, offers, player, ask, named }) {
    this.#item = item;
    this.#offers = offers;
    this.#player = player;
    this.#ask = (as, from) => {
      this.#asked.add(as);
      ask(as, from);
    };
    this.#named = named;
    for (const as of Object.keys(TITLES)) this.#sections.set(as, { node: make("div", {}), drawn: "" });
    this.node.append(...[...this.#sections.values()].map(({ node }) => node), this.#asks);
  }

  // A document that has no text of its own: now there is a reason to read it.
  scanned() {
    this.#scanned = true;
    this.draw(...this.#known);
  }

  draw(readings, states) {
    this.#known = [readings, states];
    const focused = this.node.contains(document.activeElement);
    let changed = null;
    for (const as of this.#sections.keys()) if (this.#section(as, readings[as], states[as])) changed = as;
    this.#buttons(readings, states);
    show(this.node, [...this.#sections.values()].some(({ node }) => node.hasChildNodes()) || this.#asks.hasChildNodes());
    if (focused && changed && !this.node.contains(document.activeElement)) this.#sections.get(changed).node.querySelector("[data-first]")?.focus({ preventScroll: true });
  }

  // Redraws only what changed: a reader may be in the middle of it. Progress is no change.
  #section(as, reading, state) {
    const section = this.#sections.get(as);
    const running = state?.state === "running" || state?.state === "done";
    const what = JSON.stringify([reading, running ? "running" : [state?.state, state?.reason]]);
    if (running && section.drawn === what) section.progress(state);
    if (section.drawn === what) return false;
    const more = running ? this.#running(as, state, section) : this.#ended(as, state, reading);
    section.drawn = what;
    section.node.replaceChildren(...[...(reading ? this.#read(as, reading, !state) : []), ...more].filter(Boolean));
    return true;
  }

  #running(as, state, section) {
    const words = make("span", {});
    const bar = make("progress", { "aria-label": `${BUSY[as]} ${this.#name}`, hidden: true });
    section.progress = ({ done, total }) => {
      const known = done != null && total > 0;
      say(words, known ? `${BUSY[as]}… ${this.#place(as, done, total)}` : `${BUSY[as]}…`);
      show(bar, known);
      if (known) Object.assign(bar, { max: total, value: Math.min(done, total) });
    };
    section.progress(state);
    return [make("p", { class: "reading-state", tabindex: "-1", "data-first": true }, make("span", { class: "spinner", "aria-hidden": "true" }), words), bar];
  }

  #place(as, done, total) {
    if (as === "transcript") return `${format.stamp(done)} of ${format.stamp(total)}`;
    if (this.#isDocument) return `page ${format.number(done)} of ${format.number(total)}`;
    return `${Math.floor((100 * done) / total)} %`;
  }

  #ended(as, state, reading) {
    if (state?.state !== "failed" && state?.state !== "skipped") return [];
    const failed = state.state === "failed";
    return [
      make("p", { class: failed ? "reading-state file-trouble" : "reading-state", text: `${reading ? "Not read on" : `No ${as}`}: ${state.reason || (failed ? "it failed" : "it was skipped")}` }),
      this.#offers.some((offer) => offer.as === as) ? this.#askButton(as, failed ? "Try again" : ASK[as], { "data-first": true, onclick: () => this.#ask(as, reading?.next) }) : null,
    ];
  }

  // `idle`: nothing more is being read, so that it can be read on.
  #read(as, reading, idle) {
    const title = make("span", { class: "reading-title" },
      make("strong", {}, TITLES[as], this.#named ? ` of ${this.#name}` : spoken(` of ${this.#name}`)),
      reading.uncertain ? make("span", { class: "reading-doubt", text: "uncertain" }) : null,
      make("span", { class: "quiet", text: [reading.provider, reading.model].filter(Boolean).join(" · ") }));
    const body = [...this.#words(as, reading), idle && reading.next != null ? this.#goOn(as, reading) : null];
    const label = `${TITLES[as]} of ${this.#name}`;
    if (this.#isDocument) {
      const inside = make("div", { class: "reading-rest" }, ...body);
      return [make("details", { class: "reading", open: this.#asked.has(as) }, make("summary", { "data-first": true }, title), inside)];
    }
    return [make("div", { class: "reading", role: "group", "aria-label": label, tabindex: "-1", "data-first": true }, title, ...body)];
  }

  #goOn(as, { next }) {
    const place = this.#isDocument ? `page ${format.number(next)}` : format.stamp(next);
    return button(`Read on from ${place} of ${this.#name}`, { class: "text-button go-on", onclick: () => this.#ask(as, next) }, `Read on from ${place}`);
  }

  #words(as, reading) {
    if (!reading.text.trim() && !reading.segments?.length) return [make("p", { class: "quiet", text: NOTHING[as] })];
    const { segments, text } = reading;
    const lines = as === "transcript" && segments?.length;
    const node = lines ? transcript(segments, this.#player) : make("p", { class: "reading-text", dir: "auto", text });
    const long = lines
      ? segments.length > FOLD_SEGMENTS || segments.some((segment) => segment.text.length > FOLD_SEGMENT_CHARS)
      : text.length > FOLD_CHARS || text.split("\n", FOLD_LINES + 1).length > FOLD_LINES;
    return long ? folded(node, `the ${as} of ${this.#name}`, this.#unfolded, as) : [node];
  }

  #buttons(readings, states) {
    const open = this.#offers.filter(({ as }) => !readings[as] && !states[as] && (!this.#isDocument || this.#scanned));
    const wanted = open.map(({ as }) => as).join();
    if (this.#asks.dataset.asks === wanted) return;
    this.#asks.dataset.asks = wanted;
    this.#asks.replaceChildren(...open.map(({ as, usd }) => this.#askButton(as, ASK[as], {}, usd)));
  }

  #askButton(as, text, attributes, usd = this.#offers.find((offer) => offer.as === as)?.usd) {
    const price = priceOf(usd);
    return make("button", { type: "button", class: `text-button read-${as}`, onclick: () => this.#ask(as), ...attributes },
      text, spoken(text === "Try again" ? ` to read the ${as} of ${this.#name}` : ` ${this.#name}`), price ? make("span", { class: "quiet", text: ` ${price}` }) : null);
  }

  get #isDocument() {
    return !/^(image|audio|video)\//.test(this.#item.mime);
  }

  get #name() {
    return nameOf(this.#item);
  }
}

// Nothing is charged on this machine, and nothing leaves it; else the price is told before the click.
function priceOf(usd) {
  if (usd === 0) return "";
  return usd == null ? "(sent to a provider, price unknown)" : `(sent to a provider, $${usd})`;
}

// Long text shows its beginning, and the rest on request; `unfolded` remembers which were opened.
function folded(node, what, unfolded, as) {
  const more = button("", { class: "text-button" });
  const draw = () => {
    const isOpen = unfolded.has(as);
    node.classList.toggle("folded", !isOpen);
    more.textContent = isOpen ? "Show less" : "Show all";
    more.setAttribute("aria-expanded", String(isOpen));
    more.setAttribute("aria-label", `${more.textContent} of ${what}`);
  };
  more.addEventListener("click", () => {
    if (!unfolded.delete(as)) unfolded.add(as);
    draw();
  });
  draw();
  return [node, more];
}
