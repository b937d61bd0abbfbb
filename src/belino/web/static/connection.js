// Shows whether the page is connected, and counts down to the next attempt.
import { byId, say, show } from "./dom.js";

const WORDS = { connecting: "Connecting…", connected: "Connected", waiting: "Offline, reconnecting" };

export function showConnection(socket) {
  let timer = 0;
  byId("connect-now").addEventListener("click", () => socket.connectNow());

  // The countdown is outside the live region: a screen reader would read every second of it.
  const countDown = (until) => {
    const left = Math.max(0, Math.ceil((until - performance.now()) / 1000));
    byId("connection-wait").textContent = left ? ` in ${left} s` : "";
  };
  socket.addEventListener("state", ({ detail: { state, wait, attempt } }) => {
    clearInterval(timer);
    byId("connection-wait").textContent = "";
    // The text stays between two attempts, or it would flicker and be announced each time.
    const shown = state === "connecting" && attempt > 0 ? "waiting" : state;
    byId("connection").dataset.state = shown;
    say(byId("connection-text"), WORDS[shown]);
    show(byId("connect-now"), state === "waiting" && wait > 2000);
    if (state !== "waiting") return;
    const until = performance.now() + wait;
    countDown(until);
    timer = setInterval(() => countDown(until), 250);
  });
}
