// Pairings: people who ask for access by direct message, and those who have it; enter a code, or revoke a pairing.
import { call, query } from "./api.js";
import { byId, button, make, say, show, stay } from "./dom.js";
import * as format from "./format.js";
import { mark } from "./marks.js";
import { Rows } from "./rows.js";

const WRONG = "There is no request with this code: it is mistyped, expired or refused. A wrong code costs every open request one try.";
// Codes expire by the gateway's clock, not by this one.
const LOOK_AGAIN_AFTER = 5000;

const nameOf = ({ name, sender }) => name || sender;
const placeOf = ({ platform, account, sender }) => (account === "default" ? `${platform} · ${sender}` : `${platform} · ${account} · ${sender}`);

const rows = (name, draw) => new Rows(byId(`pairings-${name}`), ({ who }) => who, draw);

export class Pairings {
  #groups;
  #all = [];
  #timer = 0;
  #rows = {
    asking: rows("asking", (one) => this.#asks(one)),
    paired: rows("paired", (one) => this.#item(one, `since ${format.when(one.at)}`, "Revoke")),
  };

  // The button counts people and groups that ask.
  constructor(groups) {
    this.#groups = groups;
    groups.addEventListener("changed", () => this.#count());
    const dialog = byId("pairings");
    byId("open-pairings").addEventListener("click", () => this.#open());
    byId("pairings-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    byId("pairings-form").addEventListener("submit", (event) => this.#approve(event));
  }

  async load() {
    const before = new Set(this.#waiting().map(({ who }) => who));
    ({ pairings: this.#all } = await call("GET", "/api/pairings"));
    this.#draw();
    this.#lookAgain();
    const fresh = this.#waiting().filter(({ who }) => !before.has(who));
    if (fresh.length) say(byId("pairings-news"), `${fresh.map(nameOf).join(", ")} asks for access`);
  }

  // The outbox holds the reply to a stranger: a new request waits.
  took({ key }) {
    return key.startsWith("pairing-") ? this.load() : Promise.resolve();
  }

  #waiting() {
    return this.#all.filter(({ state }) => state === "waiting");
  }

  #open() {
    this.#say("", "");
    byId("pairings-form").reset();
    byId("pairings").showModal();
    byId("pairings-code").focus();
    Promise.all([this.load(), this.#groups.load()]).catch((error) => this.#say("", error.message));
  }

  async #approve(event) {
    event.preventDefault();
    const code = byId("pairings-code").value.trim();
    if (!code) return;
    this.#say("", "");
    try {
      const paired = await call("POST", "/api/pairings", { code });
      byId("pairings-form").reset();
      this.#say(`${nameOf(paired)} is approved and may write to the agent directly.`, "");
    } catch (error) {
      this.#say("", error.status === 404 ? WRONG : error.message);
    }
    await this.load().catch(() => {});
    byId("pairings-code").focus();
  }

  async #end(pairing) {
    const told = pairing.state === "paired" ? "Their next messages are not stored and not answered." : "Their code is no longer valid.";
    try {
      await call("DELETE", `/api/pairings?${query({ who: pairing.who })}`);
      this.#say(`${nameOf(pairing)} is removed. ${told}`, "");
    } catch (error) {
      // Already gone is the wanted result.
      this.#say("", error.status === 404 ? "" : error.message);
    }
    await this.load().catch(() => {});
    stay(byId("pairings"), byId("pairings-title"));
  }

  #say(done, wrong) {
    say(byId("pairings-said"), done);
    say(byId("pairings-error"), wrong);
  }

  #draw() {
    const paired = this.#all.filter(({ state }) => state === "paired");
    const asking = this.#all.filter(({ state }) => state !== "paired");
    this.#fill("asking", asking);
    this.#fill("paired", paired);
    this.#count();
  }

  #count() {
    const people = this.#waiting().length;
    const count = people + this.#groups.waiting;
    say(byId("pairings-count"), count ? String(count) : "");
    show(byId("pairings-count"), count > 0);
    byId("open-pairings").setAttribute("aria-label", count ? `People, ${count} waiting` : "People");
    mark("people", people ? `${format.count(people, "person", "people")} waiting` : "");
    mark("groups", this.#groups.waiting ? `${format.count(this.#groups.waiting, "group", "groups")} waiting` : "");
  }

  #fill(name, items) {
    this.#rows[name].fill(items);
    show(byId(`pairings-${name}`), items.length > 0);
    show(byId(`pairings-${name}-none`), !items.length);
  }

  #asks(one) {
    if (one.state === "refused") return this.#item(one, `refused; may ask again at ${format.time(one.expires)}`);
    return this.#item(one, `code expires at ${format.time(one.expires)}, ${format.count(one.tries_left, "try", "tries")} left`, "Refuse");
  }

  #item(one, says, does) {
    return make("li", { class: "pairing" },
      make("div", { class: "pairing-words" },
        make("strong", { dir: "auto", text: nameOf(one) }),
        make("p", { class: "quiet", text: placeOf(one) }),
        make("p", { class: "quiet", text: says })),
      does ? button(`${does}: ${nameOf(one)}`, { class: "button", onclick: () => this.#end(one) }, does) : null);
  }

  // An expired code leaves the list, although no event reports it.
  #lookAgain() {
    clearTimeout(this.#timer);
    const ends = this.#all.filter(({ expires }) => expires).map(({ expires }) => new Date(expires) - Date.now());
    if (ends.length) this.#timer = setTimeout(() => this.load().catch(() => {}), Math.max(LOOK_AGAIN_AFTER, Math.min(...ends)));
  }
}
