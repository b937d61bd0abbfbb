// Status: accounts that work or do not, notices to the owner, the configuration, and a test of media.
import { call, query } from "./api.js";
import { byId, button, make, say, show, stay } from "./dom.js";
import * as format from "./format.js";
import { mark } from "./marks.js";
import { Rows } from "./rows.js";

const LINK_POLL_MS = 2000;
const SVG = "http://www.w3.org/2000/svg";

const keyOf = ({ platform, account }) => `${platform}:${account}`;
const nameOf = ({ platform, account }) => (account === "default" ? platform : `${platform} · ${account}`);

function stateOf({ works, state, since, reason }) {
  if (works) return reason ? `${state}; ${reason}` : state;
  return `${state} since ${format.when(since)}: ${reason}`;
}

function configWords({ rejected, is_last_good: old, restart }) {
  if (rejected) return `The file is rejected, and ${old ? "the copy that worked last" : "the running configuration"} is in use: ${rejected}`;
  if (restart.length) return `Some keys need a restart: ${restart.join(", ")}.`;
  return "The configuration file is in use.";
}

function reloadWords({ applied, restart, reconnected, removed }) {
  const parts = [];
  if (applied.length) parts.push(`Applied: ${applied.join(", ")}.`);
  if (reconnected.length) parts.push(`Connected: ${reconnected.join(", ")}.`);
  if (removed.length) parts.push(`Removed: ${removed.join(", ")}.`);
  if (restart.length) parts.push(`Needs a restart: ${restart.join(", ")}.`);
  return parts.join(" ") || "Nothing changed.";
}

// A QR code from its rows of 0 and 1: one path of dark modules on white, whatever the page's colours are.
function qr(rows, label) {
  const svg = document.createElementNS(SVG, "svg");
  const add = (tag, attributes) => {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    svg.append(part);
  };
  for (const [name, value] of Object.entries({ viewBox: `0 0 ${rows.length} ${rows.length}`, class: "qr", role: "img", "aria-label": label })) svg.setAttribute(name, value);
  add("rect", { width: rows.length, height: rows.length, fill: "#fff" });
  const dark = rows.flatMap((row, y) => [...row].flatMap((module, x) => (module === "1" ? [`M${x} ${y}h1v1h-1z`] : [])));
  add("path", { d: dark.join(""), fill: "#000", "shape-rendering": "crispEdges" });
  return svg;
}

export class Health {
  #known = null;
  #asked = new Map(); // what an account's row asks for besides its state: a conversation, a confirmation
  #accounts = [];
  #rows = {
    notices: new Rows(byId("health-notices"), ({ kind }) => kind, (one) => this.#notice(one)),
    accounts: new Rows(byId("health-accounts"), keyOf, (one) => this.#account(one)),
  };

  constructor() {
    const dialog = byId("health");
    byId("open-health").addEventListener("click", () => this.#open());
    byId("health-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    byId("health-reload").addEventListener("click", () => this.#reload([]));
  }

  async load() {
    const { accounts, notices, config } = await call("GET", "/api/health");
    this.#accounts = accounts;
    this.#rows.accounts.fill(accounts);
    this.#rows.notices.fill(notices);
    show(byId("health-notices"), notices.length > 0);
    show(byId("health-notices-none"), !notices.length);
    say(byId("health-config"), configWords(config));
    byId("health-config").className = config.rejected ? "error" : "quiet";
    this.#count(accounts.filter(({ works }) => !works), notices, config);
  }

  #count(broken, notices, config) {
    const count = broken.length + notices.length + (config.rejected ? 1 : 0);
    say(byId("health-count"), count ? String(count) : "");
    show(byId("health-count"), count > 0);
    byId("open-health").setAttribute("aria-label", count ? `Status, ${count} to look at` : "Status");
    mark("health", count ? `${count} to look at in Status` : "");
    const fresh = broken.filter((one) => this.#known && !this.#known.has(keyOf(one)));
    if (fresh.length) say(byId("health-news"), fresh.map((one) => `${keyOf(one)} does not work: ${one.reason}`).join("; "));
    this.#known = new Set(broken.map(keyOf));
  }

  #open() {
    this.#say("", "");
    this.#asked.clear();
    byId("health").showModal();
    byId("health-title").focus();
    this.load().catch((error) => this.#say("", error.message));
  }

  async #done(work) {
    this.#say("", "");
    try {
      this.#say(await work(), "");
    } catch (error) {
      this.#say("", error.message);
    }
    await this.load().catch(() => {});
    stay(byId("health"), byId("health-title"));
  }

  #reload(reconnect) {
    return this.#done(async () => reloadWords(await call("POST", "/api/config/reload", { reconnect })));
  }

  #ask(one, what) {
    this.#asked.set(keyOf(one), what);
    this.#rows.accounts.fill(this.#accounts);
  }

  #takeOver(one) {
    this.#asked.delete(keyOf(one));
    return this.#done(async () => `${keyOf(one)} gets its events now; before, ${(await call("POST", "/api/take-over", { account: keyOf(one) })).from} got them.`);
  }

  // The places to send a test to: every conversation of the account.
  async #chooseConversation(one) {
    const { conversations } = await call("GET", "/api/conversations");
    const own = conversations.filter(({ conversation }) => conversation.startsWith(`${keyOf(one)}:`));
    this.#ask(one, { places: own, findings: [] });
  }

  async #checkMedia(one, to) {
    const { places } = this.#asked.get(keyOf(one));
    this.#ask(one, { places, to, findings: [], running: true });
    try {
      const { findings } = await call("POST", "/api/doctor/live", to ? { account: keyOf(one), to } : { account: keyOf(one) });
      this.#ask(one, { places, to, findings });
      this.#say(findings.every(({ ok }) => ok) ? "All kinds of media arrive." : "", findings.every(({ ok }) => ok) ? "" : "Some kinds of media do not arrive.");
    } catch (error) {
      this.#ask(one, { places, to, findings: [] });
      this.#say("", error.message);
    }
    await this.load().catch(() => {});
  }

  #say(done, wrong) {
    say(byId("health-said"), done);
    say(byId("health-error"), wrong);
  }

  #notice(one) {
    return make("li", { class: "pairing" },
      make("div", { class: "pairing-words" },
        make("p", { class: "notice-text", dir: "auto", text: one.text }),
        make("p", { class: "quiet", text: format.when(one.at) })),
      button(`Dismiss: ${one.text}`, { class: "button", onclick: () => this.#dismiss(one) }, "Dismiss"));
  }

  #dismiss({ kind }) {
    return this.#done(async () => {
      await call("DELETE", `/api/notices?${query({ kind })}`);
      return "";
    });
  }

  #account(one) {
    const asked = this.#asked.get(keyOf(one));
    const own = one.platform !== "web";
    const act = (text, does) => button(`${text}: ${keyOf(one)}`, { class: "button", onclick: does }, text);
    return make("li", { class: "pairing", "data-works": String(one.works) },
      make("div", { class: "pairing-words" },
        make("strong", { text: nameOf(one) }),
        make("p", { class: one.works ? "quiet" : "error", dir: "auto", text: stateOf(one) })),
      own && act("Test media", () => this.#chooseConversation(one).catch((error) => this.#say("", error.message))),
      own && act("Reconnect", () => this.#reload([keyOf(one)])),
      one.can_link && act("Link a device", () => this.#link(one)),
      one.can_take_over && act("Take over", () => this.#ask(one, { confirms: true })),
      asked?.confirms && this.#confirm(one, act),
      asked?.link && this.#code(one, asked.link),
      asked?.places && this.#trial(one, asked));
  }

  // The code is asked for again while it is shown: a new one replaces one that has ended.
  async #link(one) {
    this.#say("", "");
    try {
      let link = await call("POST", "/api/link", { account: keyOf(one) });
      while (link.state === "waiting" && byId("health").open) {
        this.#ask(one, { link });
        await new Promise((done) => setTimeout(done, LINK_POLL_MS));
        link = await call("GET", `/api/link?${query({ account: keyOf(one) })}`);
      }
      if (link.state === "linked") this.#say(`${keyOf(one)} is linked.`, "");
      if (link.state === "failed") this.#say("", link.reason);
    } catch (error) {
      this.#say("", error.message);
    }
    this.#asked.delete(keyOf(one));
    await this.load().catch(() => {});
  }

  #code(one, { rows, type_in: typed }) {
    return make("div", { class: "trial" },
      rows.length > 0 && make("p", { text: "Scan this in the app on your phone, under its linked devices." }),
      rows.length > 0 && qr(rows, `QR code that links ${keyOf(one)}`),
      typed && make("p", { text: `Or type this code there: ${typed}` }));
  }

  #confirm(one, act) {
    return make("div", { class: "trial" },
      make("p", { text: "The other program then gets no events of this account any more." }),
      act("Take over now", () => this.#takeOver(one)));
  }

  #trial(one, { places, to, findings, running }) {
    const options = places.map(({ conversation, name }) => make("option", { value: conversation, selected: conversation === to, text: name }));
    const place = make("select", { "aria-label": `Where to send the test of ${keyOf(one)}` }, make("option", { value: "", text: "To the owner" }), ...options);
    return make("div", { class: "trial" },
      make("p", { class: "quiet", text: "Sends a picture, a voice note, a document and an album, reads them back, and deletes them where the platform can." }),
      make("div", { class: "pairing-row" }, place,
        button(`Send the test: ${keyOf(one)}`, { class: "button primary", disabled: running, onclick: () => this.#checkMedia(one, place.value) }, running ? "Testing…" : "Send the test")),
      make("ul", { class: "trial-findings", "aria-label": `Results of ${keyOf(one)}` },
        ...findings.map(({ name, ok, says }) => make("li", { class: ok ? "" : "error", text: `${ok ? "✓" : "✗"} ${name}: ${says}` }))));
  }
}
