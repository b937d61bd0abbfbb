// Uploads files piece by piece, three at once, resuming at the gateway's offset after a failure or a reload.
import { ApiError, answerOf, call } from "./api.js";
import * as format from "./format.js";
import { dropFile, keepFile, keptFiles } from "./keep.js";
import { newId } from "./outbox.js";

const AT_ONCE = 3;
const HASH_UP_TO = 64 * 1024 * 1024;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;
// The gateway keeps a finished upload for an hour; one of this age is checked, and sent again if it is gone.
const FRESH_MS = 50 * 60_000;

// An item: { key, conversation, name, mime, size, blob, voice, duration, upload_id, offset, state, error }.
// States: queued → uploading (⇄ retrying) → done, or failed with a reason.
export class Uploads extends EventTarget {
  #items = new Map();
  #limit;
  #running = 0;

  constructor(limit) {
    super();
    this.#limit = limit;
    window.addEventListener("online", () => this.hurry());
  }

  of(conversation) {
    return [...this.#items.values()].filter((item) => item.conversation === conversation);
  }

  // `spoken`: a recorded voice message, with its duration.
  add(conversation, file, spoken = {}) {
    const item = {
      key: newId(), conversation, name: file.name || "file", mime: file.type || "application/octet-stream",
      size: file.size, blob: file, ...spoken, upload_id: null, offset: 0, state: "queued", error: "", attempt: 0,
    };
    this.#items.set(item.key, item);
    const reason = this.#refusal(item);
    if (reason) return this.#fail(item, reason);
    this.#remember(item);
    this.#changed(item);
    this.#fill();
  }

  // After a reload: all uploads that no message took.
  async restore(sentUploads) {
    for (const record of await keptFiles()) {
      if (record.upload_id && sentUploads.has(record.upload_id)) dropFile(record.key);
      else this.#items.set(record.key, { ...record, offset: 0, state: "queued", error: "", attempt: 0 });
    }
    for (const item of this.#items.values()) this.#changed(item);
    this.#fill();
  }

  retry(key) {
    const item = this.#items.get(key);
    if (!item) return;
    const reason = this.#refusal(item);
    if (reason) return this.#fail(item, reason);
    this.#become(item, { state: "queued", error: "", attempt: 0 });
    this.#fill();
  }

  // Before a message takes its files: those that finished long ago are checked, and are busy until then.
  refresh(conversation) {
    const before = Date.now() - FRESH_MS;
    for (const item of this.of(conversation)) if (item.state === "done" && item.finished < before) this.retry(item.key);
  }

  // `keepBytes`: the upload now belongs to a message, so only our own copy is removed.
  remove(key, { keepBytes = false } = {}) {
    const item = this.#items.get(key);
    if (!item) return;
    this.#items.delete(key);
    item.stop?.();
    dropFile(key).catch(() => {});
    if (!keepBytes && item.upload_id) call("DELETE", `/api/uploads/${item.upload_id}`).catch(() => {});
    this.dispatchEvent(new CustomEvent("removed", { detail: item }));
  }

  hurry() {
    for (const item of this.#items.values()) item.wake?.();
  }

  #refusal(item) {
    if (item.size > this.#limit) return `Over the limit of ${format.size(this.#limit)}`;
    return item.size === 0 ? "The file is empty" : "";
  }

  #fill() {
    for (const item of this.#items.values()) {
      if (this.#running >= AT_ONCE) return;
      if (item.state === "queued") this.#work(item);
    }
  }

  async #work(item) {
    this.#running += 1;
    this.#become(item, { state: "uploading" });
    while (this.#items.has(item.key)) {
      try {
        await this.#upload(item);
        break;
      } catch (error) {
        if (!(error instanceof ApiError) || !error.passing) {
          this.#fail(item, reasonOf(error));
          break;
        }
        await this.#pause(item);
      }
    }
    this.#running -= 1;
    this.#fill();
  }

  async #upload(item) {
    let sha256 = await this.#begin(item);
    while (item.offset < item.size && this.#items.has(item.key)) sha256 = await this.#piece(item);
    if (this.#items.has(item.key)) this.#become(item, { state: "done", attempt: 0, sha256, finished: Date.now() });
  }

  async #begin(item) {
    if (item.upload_id) {
      try {
        const { offset, sha256 } = await call("GET", `/api/uploads/${item.upload_id}`);
        this.#become(item, { state: "uploading", offset });
        return sha256;
      } catch (error) {
        if (error.status !== 404) throw error;
      }
    }
    const { upload_id, offset, chunk_bytes } = await call("POST", "/api/uploads", {
      conversation: item.conversation, file_name: item.name, mime_type: item.mime, size: item.size, sha256: await hash(item.blob),
    });
    this.#become(item, { state: "uploading", upload_id, offset, chunk: chunk_bytes });
    if (this.#items.has(item.key)) this.#remember(item);
    else call("DELETE", `/api/uploads/${upload_id}`).catch(() => {});
    return null;
  }

  async #piece(item) {
    const from = item.offset;
    const piece = item.blob.slice(from, from + (item.chunk ?? 1024 * 1024));
    try {
      const answer = await send(item, piece, (loaded) => this.#become(item, { offset: from + Math.min(loaded, piece.size - 1) }));
      this.#become(item, { state: "uploading", offset: answer.offset, attempt: 0 });
      return answer.sha256;
    } catch (error) {
      // After a partial piece only the gateway knows its offset: it is requested again.
      if (error.status !== 409) throw error;
      const offset = error.answer.offset ?? (await call("GET", `/api/uploads/${item.upload_id}`)).offset;
      this.#become(item, { offset });
      // The same offset refused means that the broken request is still being read there: wait before the retry.
      if (offset === from) throw new ApiError(0, "busy", error.message);
      return null;
    }
  }

  async #pause(item) {
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** item.attempt);
    this.#become(item, { state: "retrying", attempt: item.attempt + 1 });
    await new Promise((resolve) => {
      item.wake = item.stop = resolve;
      setTimeout(resolve, longest / 2 + (Math.random() * longest) / 2);
    });
    item.wake = item.stop = null;
  }

  // Without IndexedDB (private windows) uploads work, but do not survive a reload.
  #remember({ key, conversation, name, mime, size, blob, voice, duration, upload_id, chunk }) {
    keepFile({ key, conversation, name, mime, size, blob, voice, duration, upload_id, chunk }).then(
      () => this.#items.has(key) || dropFile(key),
      () => {},
    );
  }

  #fail(item, error) {
    this.#become(item, { state: "failed", error });
  }

  #become(item, change) {
    Object.assign(item, change);
    this.#changed(item);
  }

  #changed(item) {
    if (this.#items.has(item.key)) this.dispatchEvent(new CustomEvent("changed", { detail: item }));
  }
}

function reasonOf(error) {
  if (!(error instanceof ApiError)) return "The file can no longer be read; attach it again";
  return error.message;
}

// XMLHttpRequest, because fetch reports no upload progress.
function send(item, piece, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PATCH", `/api/uploads/${item.upload_id}`);
    request.setRequestHeader("X-Belino", "1");
    request.setRequestHeader("Upload-Offset", String(item.offset));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = ({ loaded }) => progress(loaded);
    request.onerror = request.onabort = () => reject(new ApiError(0, "offline", "belino cannot be reached"));
    request.onload = () => {
      try {
        resolve(answerOf(request.status, request.responseText));
      } catch (error) {
        reject(error);
      }
    };
    item.stop = () => request.abort();
    request.send(piece);
  });
}

async function hash(blob) {
  if (blob.size > HASH_UP_TO || !crypto.subtle) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
