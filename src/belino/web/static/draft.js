// The draft answer: shown while it streams, removed once the message itself arrives.
import { byId, make, show } from "./dom.js";
import { render } from "./markdown.js";

// A draft that never becomes a message (there was nothing to say) is removed.
const PATIENCE = 5000;

export class Draft {
  #place = byId("draft");
  #author = make("p", { class: "author" });
  #words = make("div", { class: "words" });
  #drafts = new Map();
  #open = null;

  constructor() {
    this.#place.append(this.#author, this.#words);
  }

  open(conversation, agent) {
    this.#open = conversation;
    this.#author.textContent = agent;
    this.#draw();
  }

  // Pieces have offsets: after a missed one the draft cannot be completed, and is dropped.
  take({ conversation, turn, state, text, at }) {
    if (state === "running") this.#drafts.delete(conversation);
    else if (state === "writing") this.#grow(conversation, turn, text, at);
    else if (state === "answered") this.#end(conversation, turn);
    else if (state === "failed" || state === "aborted") this.#drafts.delete(conversation);
    this.#draw();
  }

  arrived({ conversation, author }) {
    const draft = this.#drafts.get(conversation);
    if (!author.is_agent || !draft) return;
    if (draft.ended) this.#drafts.delete(conversation);
    else draft.arrived = true;
    this.#draw();
  }

  #grow(conversation, turn, text, at) {
    const draft = this.#drafts.get(conversation);
    if (at === 0) this.#drafts.set(conversation, { turn, text });
    else if (draft?.turn === turn && draft.text.length === at) draft.text += text;
    else this.#drafts.delete(conversation);
  }

  #end(conversation, turn) {
    const draft = this.#drafts.get(conversation);
    if (!draft) return;
    if (draft.arrived) this.#drafts.delete(conversation);
    draft.ended = true;
    setTimeout(() => {
      if (this.#drafts.get(conversation)?.turn === turn) this.#drafts.delete(conversation);
      this.#draw();
    }, PATIENCE);
  }

  #draw() {
    const draft = this.#drafts.get(this.#open);
    if (draft?.text.trim()) this.#words.replaceChildren(render(draft.text));
    show(this.#place, Boolean(draft?.text.trim()));
  }
}
