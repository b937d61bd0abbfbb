// Talks HTTP to the gateway and turns its refusals into errors that say why.
import * as format from "./format.js";

export class ApiError extends Error {
  constructor(status, code, message, answer = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.answer = answer;
  }

  // No refusal: a retry may work.
  get passing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || (this.status >= 500 && this.status !== 507);
  }
}

let whenSignedOut = () => {};

export function onSignedOut(callback) {
  whenSignedOut = callback;
}

export async function call(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { "X-Belino": "1", ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, "offline", "belino cannot be reached");
  }
  return answerOf(response.status, await response.text());
}

const NAMES = new Set(["name", "file_name", "last_text", "speaker"]);

// All answers of the gateway pass through here, and names are cleaned of signs that disguise them.
export const read = (text) => JSON.parse(text, (key, value) => (NAMES.has(key) && typeof value === "string" ? format.name(value) : value));

export function answerOf(status, text) {
  let answer = {};
  try {
    answer = text ? read(text) : {};
  } catch {
    answer = {};
  }
  if (status >= 200 && status < 300) return answer;
  if (status === 401) whenSignedOut();
  const { code = "internal", message = `belino answered ${status}` } = answer.error ?? {};
  throw new ApiError(status, code, message, answer);
}

export const query = (values) => {
  const known = Object.entries(values).filter(([, value]) => value != null);
  return new URLSearchParams(known).toString();
};
