// Groups that the agent was added to: allow, refuse, or take a decision back.
import { call, query } from "./api.js";
import { byId, button, make, say, show, stay } from "./dom.js";
import * as format from "./format.js";
import { Rows } from "./rows.js";

const nameOf = ({ name, channel }) => name || channel;
const placeOf = ({ platform, account, channel }) => (account === "default" ? `${platform} · ${channel}` : `${platform} · ${account} · ${channel}`);
const inviterOf = ({ inviter }) => (inviter ? inviter.name || inviter.id : "");

const WHO = {
  waiting: (one) => `added by ${inviterOf(one) || "an unknown person"}, ${format.when(one.asked)}`,
  allowed: (one) => `allowed: ${one.everyone ? "everyone there" : [inviterOf(one), "owners"].filter(Boolean).join(" and ")} may command the agent`,
  refused: () => "refused; does not ask again",
};

export class Groups extends EventTarget {
  #all = [];
  #known = null;
  #rows = {
    asking: new Rows(byId("groups-asking"), ({ group }) => group, (one) => this.#asks(one)),
    decided: new Rows(byId("groups-decided"), ({ group }) => group, (one) => this.#item(one, this.#act("Revoke", one, () => this.#forget(one)))),
  };

  get waiting() {
    return this.#all.filter(({ state }) => state === "waiting").length;
  }

  async load() {
    ({ groups: this.#all } = await call("GET", "/api/groups"));
    const asking = this.#all.filter(({ state }) => state === "waiting");
    this.#fill("asking", asking);
    this.#fill("decided", this.#all.filter(({ state }) => state !== "waiting"));
    const fresh = asking.filter(({ group }) => this.#known && !this.#known.has(group));
    if (fresh.length) say(byId("pairings-news"), `${fresh.map(nameOf).join(", ")} asks for access`);
    this.#known = new Set(asking.map(({ group }) => group));
    this.dispatchEvent(new CustomEvent("changed"));
  }

  async #decide(one, wish, told) {
    await this.#done(() => call("POST", "/api/groups", { group: one.group, ...wish }), told);
  }

  async #forget(one) {
    await this.#done(() => call("DELETE", `/api/groups?${query({ group: one.group })}`), `${nameOf(one)} is no longer decided; it may ask again.`);
  }

  async #done(work, told) {
    say(byId("pairings-said"), "");
    say(byId("pairings-error"), "");
    try {
      await work();
      say(byId("pairings-said"), told);
    } catch (error) {
      say(byId("pairings-error"), error.message);
    }
    await this.load().catch(() => {});
    stay(byId("pairings"), byId("pairings-title"));
  }

  #asks(one) {
    const name = nameOf(one);
    return this.#item(one,
      this.#act("Allow", one, () => this.#decide(one, { allow: true }, `${name} is allowed: ${inviterOf(one) || "owners"} may command the agent there.`)),
      this.#act("Allow everyone", one, () => this.#decide(one, { allow: true, everyone: true }, `${name} is allowed: everyone may command the agent there.`)),
      this.#act("Refuse", one, () => this.#decide(one, { allow: false }, `${name} is refused. Nothing that is said there is kept.`)));
  }

  #act(text, one, does) {
    return button(`${text}: ${nameOf(one)}`, { class: "button", onclick: does }, text);
  }

  #item(one, ...actions) {
    return make("li", { class: "pairing" },
      make("div", { class: "pairing-words" },
        make("strong", { dir: "auto", text: nameOf(one) }),
        make("p", { class: "quiet", text: placeOf(one) }),
        make("p", { class: "quiet", dir: "auto", text: WHO[one.state](one) })),
      ...actions);
  }

  #fill(name, items) {
    this.#rows[name].fill(items);
    show(byId(`groups-${name}`), items.length > 0);
    show(byId(`groups-${name}-none`), !items.length);
  }
}
