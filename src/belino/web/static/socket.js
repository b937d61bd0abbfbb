// Keeps one WebSocket to the gateway open, reconnecting with back-off, and pairs requests with answers.
import { ApiError, read } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
const ANSWER_WITHIN = 30_000;

export class Socket extends EventTarget {
  #socket = null;
  #waiting = new Map();
  #attempt = 0;
  #number = 0;
  #timer = 0;
  #stopped = false;
  state = "connecting";

  start() {
    window.addEventListener("online", () => this.connectNow());
    window.addEventListener("offline", () => this.#drop());
    document.addEventListener("visibilitychange", () => document.hidden || this.connectNow());
    this.#connect();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  connectNow() {
    if (this.state !== "waiting" || this.#stopped) return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  // Resolves to the answer; rejects with the gateway's error, or as `offline` without an answer.
  request(method, params) {
    if (this.state !== "connected") return Promise.reject(new ApiError(0, "offline", "not connected"));
    const id = `${method}-${++this.#number}`;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle(id, null, new ApiError(0, "offline", "belino did not answer in time")), ANSWER_WITHIN);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  #connect() {
    this.#become("connecting");
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => socket === this.#socket && this.#take(read(data)));
    socket.addEventListener("close", () => this.#lost(socket));
  }

  #take(frame) {
    if (frame.type === "res") {
      const { code, message } = frame.error ?? {};
      this.#settle(frame.id, frame.payload, frame.ok ? null : new ApiError(400, code, message));
      return;
    }
    if (frame.event === "hello") {
      this.#attempt = 0;
      this.#become("connected");
    }
    this.dispatchEvent(new CustomEvent(frame.event, { detail: frame }));
  }

  #settle(id, payload, error) {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    if (error) waiting.reject(error);
    else waiting.resolve(payload);
  }

  // Without a network the closing handshake is never answered, and the browser waits for it: the page does not.
  #drop() {
    if (this.state === "waiting") return;
    this.#socket.close();
    this.#lost(this.#socket);
  }

  #lost(socket) {
    if (socket !== this.#socket || this.#stopped) return;
    this.#socket = null;
    for (const id of [...this.#waiting.keys()]) this.#settle(id, null, new ApiError(0, "offline", "the connection was lost"));
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#attempt++);
    const wait = longest / 2 + (Math.random() * longest) / 2;
    this.#timer = setTimeout(() => this.#connect(), wait);
    this.#become("waiting", wait);
  }

  #become(state, wait = 0) {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, wait, attempt: this.#attempt } }));
  }
}
