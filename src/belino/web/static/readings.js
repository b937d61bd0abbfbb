// What was read from media: known from messages, requested here, and followed while it is made.
import { call } from "./api.js";
import { byId, say } from "./dom.js";
import { capabilityOf, nameOf } from "./names.js";
import { Panel, TITLES } from "./panels.js";

const FORMS = { transcription: "transcript", description: "description", text: "text" };
const UNDER_WAY = new Set(["running", "done"]);

const formOf = ({ kind }) => FORMS[kind.split(".")[1]];

export class Readings {
  #offers;
  #panels = new Map();
  #read = new Map();
  #states = new Map();

  // `offers`: for each capability the forms that can be requested, with their prices.
  constructor(offers = {}) {
    this.#offers = offers;
  }

  // Another conversation is opened.
  clear() {
    this.#panels.clear();
    this.#read.clear();
  }

  // After a gap a reading may have ended unnoticed; a running one will be heard of again.
  forget() {
    for (const [ref, states] of this.#states) {
      for (const [as, { state, asked }] of Object.entries(states)) if (UNDER_WAY.has(state) && !asked) delete states[as];
      this.#draw(ref);
    }
  }

  // The place below a media item. `player` is its audio or video element; `quiet` shows readings without buttons,
  // `named` with the item's name.
  panel(item, { player = null, quiet = false, named = false } = {}) {
    const offers = quiet ? [] : this.#offers[capabilityOf(item)] ?? [];
    const panel = new Panel({ item, offers, player, named, ask: (as, from) => this.ask(item, as, from) });
    this.#panels.set(item.ref, [...(this.#panels.get(item.ref) ?? []).filter(({ node }) => node.isConnected), panel]);
    panel.draw(this.#read.get(item.ref) ?? {}, this.#states.get(item.ref) ?? {});
    return panel;
  }

  // Whether one page of a document can be read as text.
  get readsPages() {
    return (this.#offers.document ?? []).some(({ as }) => as === "text");
  }

  readPage({ ref }, page) {
    return request({ ref, as: "text", pages: String(page) });
  }

  learn({ media, readings = [] }) {
    media.forEach(({ ref }, index) => {
      if (!ref) return;
      const before = this.#read.get(ref) ?? {};
      const found = readings.filter(({ attachment_index: at }) => at === index).map((reading) => [formOf(reading), reading]);
      // Only the answer to a request says where to read on.
      this.#read.set(ref, Object.fromEntries(found.map(([as, reading]) => [as, { next: before[as]?.next, ...reading }])));
      const states = this.#states.get(ref) ?? {};
      for (const as of Object.keys(states)) if (states[as].state === "done" || this.#read.get(ref)[as]) delete states[as];
      this.#draw(ref);
    });
  }

  took({ ref, as, state, done, total, provider, reason }) {
    const asked = this.#states.get(ref)?.[as]?.asked;
    // The answer to our own request says how it ended.
    if (!asked || state === "running") this.#become(ref, as, { state, done, total, provider, reason, asked });
  }

  // `from`: where to read on, a second or a page.
  async ask(item, as, from = null) {
    const { ref } = item;
    const before = from == null ? null : this.#read.get(ref)?.[as];
    if (this.#states.get(ref)?.[as]?.asked) return;
    this.#become(ref, as, { state: "running", asked: true });
    try {
      const reading = await request({ ref, as, ...rangeOf(item, from) });
      this.#read.set(ref, { ...this.#read.get(ref), [as]: before ? joined(before, reading) : reading });
      this.#become(ref, as, undefined);
      this.#announce(`${TITLES[as]} of ${nameOf(item)} is ready`);
    } catch (error) {
      this.#become(ref, as, { state: "failed", reason: error.message });
      this.#announce(`There is no ${as} of ${nameOf(item)}: ${error.message}`);
    }
  }

  #become(ref, as, state) {
    const states = { ...this.#states.get(ref), [as]: state };
    if (!state) delete states[as];
    this.#states.set(ref, states);
    this.#draw(ref);
  }

  #draw(ref) {
    for (const panel of this.#panels.get(ref) ?? []) panel.draw(this.#read.get(ref) ?? {}, this.#states.get(ref) ?? {});
  }

  #announce(text) {
    say(byId("reading-news"), text);
  }
}

// The place where a refusal is shown already says what it is about.
async function request({ ref, as, ...range }) {
  try {
    return (await call("POST", "/api/media/read", { ref, as, ...range })).reading;
  } catch (error) {
    throw new Error(error.message.replace(`${ref} cannot be read as ${as}: `, ""));
  }
}

function rangeOf(item, from) {
  if (from == null) return {};
  return capabilityOf(item) === "document" ? { pages: `${from}-` } : { time_range: `${Math.floor(from)}-` };
}

const joined = (before, reading) => ({
  ...reading, text: `${before.text}\n${reading.text}`, segments: [...(before.segments ?? []), ...(reading.segments ?? [])], uncertain: before.uncertain || reading.uncertain,
});
