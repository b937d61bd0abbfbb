// The messages of the open conversation in order, grouped by day and author, with the unsent ones last.
import { bubble } from "./bubble.js";
import { byId, make, show } from "./dom.js";
import * as format from "./format.js";
import { arrange } from "./rows.js";

const SAME_BREATH = 5 * 60 * 1000;

export class Timeline {
  #list = byId("messages");
  #empty = byId("empty");
  #messages = new Map();
  #unsent = new Map();
  #nodes = new Map();
  #days = new Map();
  #does;
  #place = { platform: "web", visitor: null };

  constructor(does) {
    this.#does = does;
  }

  clear(place) {
    this.#place = place;
    this.#does.readings.clear();
    for (const known of [this.#messages, this.#unsent, this.#nodes, this.#days]) known.clear();
    this.#list.replaceChildren();
    show(this.#empty, false);
  }

  get lastSeq() {
    return this.#messages.size ? Math.max(...this.#seqs()) : null;
  }

  get firstSeq() {
    return this.#messages.size ? Math.min(...this.#seqs()) : null;
  }

  get stored() {
    return [...this.#messages.values()].sort((one, other) => one.seq - other.seq);
  }

  // Messages are deduplicated by id: answer, event and history may repeat one. Returns how many are new.
  put(messages) {
    let fresh = 0;
    for (const message of messages) {
      const known = this.#messages.get(message.id);
      if (known && JSON.stringify(known) === JSON.stringify(message)) continue;
      if (!known && !this.#unsent.has(message.id)) fresh += 1;
      this.#unsent.delete(message.id);
      this.#messages.set(message.id, message);
      this.#does.readings.learn(message);
      this.#draw(message, known);
      this.#drawAnswers(message);
    }
    this.#arrange();
    return fresh;
  }

  putUnsent(message) {
    const known = this.#unsent.get(message.id);
    if (this.#messages.has(message.id) || (known && JSON.stringify(known) === JSON.stringify(message))) return;
    this.#unsent.set(message.id, message);
    this.#draw(message, known);
    this.#arrange();
  }

  removeUnsent(id) {
    if (!this.#unsent.delete(id)) return;
    this.#nodes.get(id)?.remove();
    this.#nodes.delete(id);
    this.#arrange();
  }

  #seqs() {
    return [...this.#messages.values()].map((message) => message.seq);
  }

  // A reply shows the beginning of the message it answers.
  #drawAnswers({ id }) {
    for (const other of [...this.#messages.values(), ...this.#unsent.values()]) if (other.reply_to === id) this.#draw(other, other);
  }

  // Media that did not change since `before` stay as they are: a sound keeps playing, a picture is not loaded again.
  #draw(message, before) {
    const old = this.#nodes.get(message.id);
    const focused = old?.contains(document.activeElement) ? document.activeElement : null;
    const media = before && JSON.stringify(before.media) === JSON.stringify(message.media) ? old.querySelector(".media") : null;
    const node = bubble(message, this.#does, this.#place, { answered: this.#messages.get(message.reply_to), media });
    old?.replaceWith(node);
    if (focused) this.#keepFocus(focused, node);
    this.#nodes.set(message.id, node);
  }

  // A message that changes while it has the focus must not lose it to the top of the page.
  #keepFocus(focused, node) {
    queueMicrotask(() => {
      const like = [...node.querySelectorAll("button, a")].filter((one) => one.className === focused.className);
      const same = node.contains(focused) ? focused : like.find((one) => one.dataset.key === focused.dataset.key) ?? like[0];
      (same ?? node.querySelector(".media button, .media a, .why-button"))?.focus({ preventScroll: true });
    });
  }

  #arrange() {
    const nodes = [];
    let before = null;
    for (const message of [...this.stored, ...this.#unsent.values()]) {
      const newDay = !before || format.dayKey(before.sent) !== format.dayKey(message.sent);
      if (newDay) nodes.push(this.#day(message.sent));
      const node = this.#nodes.get(message.id);
      node.classList.toggle("follows", !newDay && sameBreath(before, message));
      nodes.push(node);
      before = message;
    }
    arrange(this.#list, nodes);
    show(this.#empty, before === null);
  }

  #day(iso) {
    const key = format.dayKey(iso);
    if (!this.#days.has(key)) this.#days.set(key, make("p", { class: "day" }, make("span", { text: format.day(iso) })));
    return this.#days.get(key);
  }
}

function sameBreath(before, message) {
  return before.author.id === message.author.id && before.author.is_agent === message.author.is_agent && new Date(message.sent) - new Date(before.sent) < SAME_BREATH;
}
