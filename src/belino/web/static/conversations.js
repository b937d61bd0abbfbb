// The list of conversations, the drawer it becomes on a small screen, and the dialog that names a new one.
import { call } from "./api.js";
import { byId, make, say, show, spoken } from "./dom.js";
import * as format from "./format.js";
import { inShort } from "./names.js";
import { Rows } from "./rows.js";

const narrow = matchMedia("(max-width: 860px)");

export const addressOf = (conversation) => `#c=${encodeURIComponent(conversation)}`;

export function fromAddress() {
  const match = /^#c=(.+)$/.exec(location.hash);
  try {
    return match && decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}

export class Conversations {
  #all = new Map();
  #open = null;
  #unseen = new Set();
  #isBusy;
  #rows = new Rows(byId("conversations"), ({ conversation }) => conversation, (one) => this.#item(one));

  constructor(isBusy) {
    this.#isBusy = isBusy;
    byId("new-conversation").addEventListener("click", () => this.#ask());
    byId("naming-cancel").addEventListener("click", () => byId("naming").close());
    byId("naming-form").addEventListener("submit", (event) => this.#create(event));
    byId("open-sidebar").addEventListener("click", () => this.#drawer(true));
    for (const id of ["close-sidebar", "scrim"]) byId(id).addEventListener("click", () => this.#drawer(false));
    // Choosing the open conversation changes no address.
    byId("conversations").addEventListener("click", ({ target }) => target.closest("[aria-current]") && this.#drawer(false));
    byId("sidebar").addEventListener("keydown", ({ key }) => key === "Escape" && this.#drawer(false));
    narrow.addEventListener("change", () => this.#drawer(false));
    this.#drawer(false, false);
  }

  async load() {
    const { conversations } = await call("GET", "/api/conversations");
    this.#all = new Map(conversations.map((one) => [one.conversation, one]));
    this.draw();
  }

  get(conversation) {
    return this.#all.get(conversation);
  }

  get newest() {
    return this.#sorted()[0]?.conversation ?? null;
  }

  open(conversation) {
    this.#open = conversation;
    this.#unseen.delete(conversation);
    this.#drawer(false, false);
    this.draw();
  }

  // A message arrived: its conversation moves up; if it is not open, it is marked.
  async took(message) {
    const { conversation } = message;
    const known = this.#all.get(conversation);
    if (!known) return this.load();
    if (conversation !== this.#open && message.author.is_agent) this.#unseen.add(conversation);
    if (known.last && known.last > message.sent) return;
    Object.assign(known, { last: message.sent, last_text: inShort(message), last_author: message.author.name });
    this.draw();
  }

  // The same for many conversations at once, from an overview.
  async glanced(changes) {
    if (changes.some(({ conversation }) => !this.#all.has(conversation))) await this.load();
    for (const { conversation, last, last_text, last_author, answered } of changes) {
      const known = this.#all.get(conversation);
      if (answered) this.#unseen.add(conversation);
      if (known && last && !(known.last > last)) Object.assign(known, { last, last_text, last_author });
    }
    this.draw();
  }

  draw() {
    this.#rows.fill(this.#sorted());
  }

  // Newest first; a conversation without messages is newer than all.
  #sorted() {
    return [...this.#all.values()].sort((one, other) => (other.last ?? "9").localeCompare(one.last ?? "9"));
  }

  #item({ conversation, name, platform, last, last_text }) {
    const unseen = this.#unseen.has(conversation);
    const busy = this.#isBusy(conversation);
    const link = make("a", { href: addressOf(conversation), class: "conversation", "aria-current": conversation === this.#open ? "page" : null },
      make("span", { class: "conversation-name", text: name || conversation }),
      last ? make("time", { datetime: last, text: format.when(last) }) : null,
      make("span", { class: "conversation-last", text: last_text || (platform === "web" ? "No messages yet" : platform) }),
      busy || unseen ? make("span", { class: busy ? "mark busy" : "mark" }, spoken(busy ? "answering" : "new messages")) : null,
    );
    return make("li", {}, link);
  }

  #drawer(opened, moveFocus = true) {
    const hidden = narrow.matches && !opened;
    byId("sidebar").classList.toggle("opened", opened);
    byId("sidebar").inert = hidden;
    byId("room").inert = narrow.matches && opened;
    byId("open-sidebar").setAttribute("aria-expanded", String(opened));
    show(byId("scrim"), narrow.matches && opened);
    if (narrow.matches && moveFocus) byId(opened ? "close-sidebar" : "open-sidebar").focus();
  }

  #ask() {
    byId("naming-form").reset();
    say(byId("naming-error"), "");
    byId("naming").showModal();
  }

  async #create(event) {
    event.preventDefault();
    const name = byId("naming-name").value.trim();
    if (!name) return;
    try {
      const { conversation } = await call("POST", "/api/conversations", { name });
      await this.load();
      byId("naming").close();
      location.hash = addressOf(conversation);
    } catch (error) {
      say(byId("naming-error"), error.message);
    }
  }
}
