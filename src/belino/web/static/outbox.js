// Holds messages until the gateway has them: each has its own id, so that a retry never duplicates it.
import { keep, keptUnder } from "./keep.js";

// Each message has its own storage key: other tabs write there too.
const PLACE = "outbox:";

export const newId = () => `w-${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(2)).join("").slice(0, 16)}`;

export class Outbox extends EventTarget {
  #socket;
  #entries = new Map();
  #running = false;

  constructor(socket) {
    super();
    this.#socket = socket;
    for (const entry of keptUnder(PLACE)) this.#entries.set(entry.id, { ...entry, state: entry.state === "failed" ? "failed" : "sending" });
    socket.addEventListener("hello", () => this.#run());
  }

  get(id) {
    return this.#entries.get(id);
  }

  of(conversation) {
    return [...this.#entries.values()].filter((entry) => entry.conversation === conversation);
  }

  uploadIds() {
    return new Set([...this.#entries.values()].flatMap((entry) => entry.attachments.map((file) => file.upload_id)));
  }

  add({ conversation, text, attachments = [], reply_to }) {
    const entry = { id: newId(), conversation, text, attachments, reply_to, made: new Date().toISOString(), state: "sending", reason: "" };
    this.#change(entry);
    this.#run();
    return entry;
  }

  retry(id) {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#change({ ...entry, state: "sending", reason: "" });
    this.#run();
  }

  // The gateway has it, or the user discarded it.
  remove(id) {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#entries.delete(id);
    keep(PLACE + id, null);
    for (const { preview } of entry.attachments) if (preview) URL.revokeObjectURL(preview);
    this.dispatchEvent(new CustomEvent("removed", { detail: entry }));
  }

  // One after the other, in the order of writing.
  async #run() {
    if (this.#running) return;
    this.#running = true;
    try {
      for (let entry = this.#next(); entry; entry = this.#next()) if (!(await this.#send(entry))) break;
    } finally {
      this.#running = false;
    }
  }

  #next() {
    return [...this.#entries.values()].find((entry) => entry.state === "sending");
  }

  async #send(entry) {
    const { id, conversation, text, reply_to } = entry;
    const attachments = entry.attachments.map(({ upload_id, voice, duration }) => ({ upload_id, voice, duration }));
    try {
      const { language } = navigator;
      const answer = await this.#socket.request("chat.send", { id, conversation, message: text, attachments, reply_to, language });
      if (!this.#entries.has(id)) return true;
      // Refused: nothing was stored, so the text stays here.
      if (!answer.message) this.#change({ ...entry, state: "failed", reason: answer.reason || answer.outcome });
      else this.#sent(entry, answer.message);
      return true;
    } catch (error) {
      if (!this.#entries.has(id)) return true;
      if (error.passing || error.code === "busy") return this.#again(error);
      this.#change({ ...entry, state: "failed", reason: error.message });
      return true;
    }
  }

  #sent(entry, message) {
    this.dispatchEvent(new CustomEvent("sent", { detail: message }));
    this.remove(entry.id);
  }

  // While the connection is down, the next hello runs the outbox again.
  #again(error) {
    if (this.#socket.state === "connected") setTimeout(() => this.#run(), error.code === "busy" ? 2000 : 500);
    return false;
  }

  #change(entry) {
    this.#entries.set(entry.id, entry);
    // Object URLs of previews end with the page, so they are not stored.
    keep(PLACE + entry.id, { ...entry, attachments: entry.attachments.map(({ preview, ...file }) => file) });
    this.dispatchEvent(new CustomEvent("changed", { detail: entry }));
  }
}
