// Signs in with the one-time token of the address, or explains how to get one.
import { ApiError, call } from "./api.js";
import { byId, say } from "./dom.js";

// The token is removed from the address bar first: otherwise history and shared screens keep it.
// A link may open a conversation: #token=…&c=…
export function takeToken() {
  const match = /^#token=([^&]+)(?:&(c=.+))?/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", location.pathname + location.search + (match[2] ? `#${match[2]}` : ""));
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return null;
  }
}

// Resolves to the visitor, or to null without a session.
export async function signIn(token) {
  let reason = "";
  if (token) {
    try {
      await call("POST", "/api/login", { token });
    } catch (error) {
      if (!(error instanceof ApiError) || error.passing) throw error;
      reason = error.status === 401 ? "That link was already used or is too old." : error.message;
    }
  }
  try {
    return await call("GET", "/api/me");
  } catch (error) {
    if (error.status !== 401) throw error;
    showWelcome(reason || "This page opens with a personal link.");
    return null;
  }
}

export function showWelcome(reason, title = "Sign in to belino") {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  say(byId("welcome-title"), title);
  say(byId("welcome-reason"), reason);
  byId("app").hidden = true;
  byId("welcome").hidden = false;
}
