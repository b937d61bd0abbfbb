// The agent's undelivered answers: on their way, held, uncertain or failed, with retry and drop.
import { call, query } from "./api.js";
import { byId, button, make, say, show, stay } from "./dom.js";
import * as format from "./format.js";
import { mark } from "./marks.js";
import { Rows } from "./rows.js";

// Most answers are sent faster: they are never shown as waiting.
const PAUSE = 400;
const LISTED = 200;
const SNIPPET = 80;
const UNDER_WAY = new Set(["ready", "sending"]);

export class Parcels extends EventTarget {
  #all = [];
  #timer = 0;
  #known = null;
  #rows = { waiting: this.#list("waiting"), going: this.#list("going") };

  constructor() {
    super();
    const dialog = byId("outbox");
    byId("open-outbox").addEventListener("click", () => this.#open());
    byId("outbox-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  }

  of(conversation) {
    return this.#all.filter((parcel) => parcel.conversation === conversation);
  }

  // A parcel changed: a sent one is removed at once, the rest is reloaded, once for all changes until then.
  took({ key, state }) {
    if (state === "sent" && this.#all.some((parcel) => parcel.key === key)) this.#set(this.#all.filter((parcel) => parcel.key !== key));
    this.#soon();
  }

  // Parcels of other conversations matter when they fail, and while the dialog lists them all.
  glanced(parcels) {
    const sent = new Set(parcels.filter(({ state }) => state === "sent").map(({ key }) => key));
    if (this.#all.some(({ key }) => sent.has(key))) this.#set(this.#all.filter(({ key }) => !sent.has(key)));
    const known = new Set(this.#all.map(({ key }) => key));
    const matters = ({ key, state }) => known.has(key) || (state !== "sent" && !UNDER_WAY.has(state));
    if (parcels.length && (byId("outbox").open || parcels.some(matters))) this.#soon();
  }

  #soon() {
    if (!this.#timer) this.#timer = setTimeout(() => this.load().catch(() => {}), PAUSE);
  }

  async load() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const { parcels } = await call("GET", `/api/outbox?${query({ unsent: 1, limit: LISTED })}`);
    this.#set(parcels.reverse());
    this.#announce();
  }

  async send(key) {
    await this.#decide(key, "POST", "/retry", "It is sent now.");
  }

  async drop(key) {
    await this.#decide(key, "DELETE", "", "It will not be sent.");
  }

  #waiting() {
    return this.#all.filter(({ state }) => !UNDER_WAY.has(state));
  }

  #set(parcels) {
    this.#all = parcels;
    this.#draw();
    this.dispatchEvent(new CustomEvent("changed"));
  }

  // The button shows what waited when the page was opened; only later ones are announced.
  #announce() {
    const waiting = this.#waiting();
    const fresh = waiting.filter(({ key }) => this.#known && !this.#known.has(key));
    if (fresh.length) say(byId("outbox-news"), `${format.count(fresh.length, "answer was", "answers were")} not sent: ${fresh.at(-1).reason}`);
    this.#known = new Set(waiting.map(({ key }) => key));
  }

  #open() {
    this.#say("", "");
    byId("outbox").showModal();
    byId("outbox-title").focus();
    this.load().catch((error) => this.#say("", error.message));
  }

  async #decide(key, method, path, done) {
    this.#say("", "");
    try {
      await call(method, `/api/outbox/${encodeURIComponent(key)}${path}`);
      this.#say(done, "");
    } catch (error) {
      this.#say("", error.message);
    }
    await this.load().catch(() => {});
    stay(byId("outbox"), byId("outbox-title"));
  }

  #say(done, wrong) {
    say(byId("outbox-said"), done);
    say(byId("outbox-error"), wrong);
  }

  #draw() {
    const waiting = this.#waiting();
    this.#fill("waiting", [...waiting].reverse());
    this.#fill("going", this.#all.filter(({ state }) => UNDER_WAY.has(state)));
    const count = waiting.length;
    say(byId("outbox-count"), count ? String(count) : "");
    show(byId("outbox-count"), count > 0);
    byId("open-outbox").setAttribute("aria-label", count ? `Outbox, ${count} not sent` : "Outbox");
    mark("outbox", count ? `${format.count(count, "answer", "answers")} not sent` : "");
  }

  #list(name) {
    return new Rows(byId(`outbox-${name}`), ({ key }) => key, (one) => this.#item(one));
  }

  #fill(name, parcels) {
    this.#rows[name].fill(parcels);
    show(byId(`outbox-${name}`), parcels.length > 0);
    show(byId(`outbox-${name}-none`), !parcels.length);
  }

  #item(one) {
    const what = [...one.files.map(({ name }) => name), one.text].filter(Boolean).join(", ");
    const short = what.length > SNIPPET ? `${what.slice(0, SNIPPET)}…` : what;
    const act = (text, does) => button(`${text}: ${short}`, { class: "button", onclick: does }, text);
    return make("li", { class: "pairing" },
      make("div", { class: "pairing-words" },
        make("p", { dir: "auto", text: short }),
        make("p", { class: "quiet", text: `${one.conversation} · ${format.when(one.created)}` }),
        make("p", { class: UNDER_WAY.has(one.state) ? "quiet" : "error", text: parcelWords(one) })),
      ...(one.state === "sending" ? [] : [act(sendWords(one), () => this.send(one.key)), act("Drop", () => this.drop(one.key))]));
  }
}

const WORDS = { held: "Held", uncertain: "Uncertain", dead: "Not sent" };

// A parcel's state in words.
export function parcelWords({ state, reason, ready }) {
  if (state === "sending") return "Sending…";
  if (state === "ready") return reason ? `Not sent yet: ${reason}. Next try at ${format.time(ready)}` : "Sending…";
  return `${WORDS[state]}: ${reason}`;
}

export const sendWords = ({ state }) => (state === "uncertain" ? "Send again" : state === "ready" ? "Try now" : "Send");

// A parcel in the timeline: like a message of the agent, with a state.
export const asMessage = (parcel, agent) => ({
  id: parcel.key, conversation: parcel.conversation, author: { id: "agent", name: agent, is_agent: true }, sent: parcel.created, text: parcel.text,
  state: UNDER_WAY.has(parcel.state) ? "sending" : "failed", parcel,
  media: parcel.files.map(({ name, mime, size, caption }) => ({ kind: mime.split("/")[0], mime, file_name: name, size, caption, url: null, local: true })),
});
