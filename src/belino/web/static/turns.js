// Tracks the conversations with a running turn, and shows it in the open one, with a stop button.
import { byId, say, show } from "./dom.js";

const UNNUMBERED = 0;
const STOP_AGAIN = 200;
const ENDED = new Set(["answered", "failed", "aborted"]);

export class Turns {
  #running = new Map();
  #stopping = new Set();
  #open = null;
  #agent = "";
  #abort;
  #changed;

  constructor(abort, changed) {
    this.#abort = abort;
    this.#changed = changed;
    byId("stop").addEventListener("click", async () => {
      const conversation = this.#open;
      this.#stopping.add(conversation);
      this.#draw();
      await this.#stop(conversation).catch(() => {});
      this.#stopping.delete(conversation);
      this.#draw();
    });
  }

  open(conversation, agent) {
    this.#open = conversation;
    this.#agent = agent;
    this.#draw();
  }

  // After a gap the state is stale: a turn may have ended unnoticed. History has the current one.
  forget() {
    this.#running.clear();
    this.#changed();
  }

  isBusy(conversation) {
    return (this.#running.get(conversation)?.size ?? 0) > 0;
  }

  take({ conversation, turn, state, text }) {
    const turns = this.#running.get(conversation) ?? new Map();
    turns.delete("history");
    // A waiting turn has no number yet; the next event is about the one that waited first.
    turns.delete(UNNUMBERED);
    if (ENDED.has(state)) turns.delete(turn);
    else turns.set(turn, { state, text: state === "note" ? text : "" });
    this.#running.set(conversation, turns);
    this.#draw();
  }

  // History has what events missed: a turn that began before we were connected, or ended while we were not.
  learn(conversation, messages) {
    const turns = new Map();
    const asked = messages.filter((message) => !message.author.is_agent).at(-1);
    if (asked && (asked.outcome === "waiting" || asked.outcome === "working")) {
      const known = this.#running.get(conversation);
      if (known?.size) return;
      turns.set("history", { state: asked.outcome, text: "" });
    }
    this.#running.set(conversation, turns);
    this.#draw();
  }

  // A waiting turn cannot be stopped yet: the request is repeated until it can be, or has ended.
  async #stop(conversation) {
    while (this.isBusy(conversation)) {
      const { aborted } = await this.#abort(conversation);
      if (aborted) return;
      await new Promise((resolve) => setTimeout(resolve, STOP_AGAIN));
    }
  }

  #draw() {
    const turns = [...(this.#running.get(this.#open)?.values() ?? [])];
    const working = turns.find((turn) => turn.state !== "waiting") ?? turns[0];
    if (working) say(byId("turn-text"), working.text || (working.state === "waiting" ? `${this.#agent} will answer` : `${this.#agent} is writing`));
    show(byId("turn"), Boolean(working));
    byId("stop").disabled = this.#stopping.has(this.#open);
    this.#changed();
  }
}
