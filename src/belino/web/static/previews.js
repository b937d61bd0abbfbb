// Requests previews of files that are held and in view, a few at a time, and caches them.
import { call, query } from "./api.js";
import { byId } from "./dom.js";

const AT_ONCE = 2;
const KEPT = 200;
const AHEAD = "300px 0px";

const known = new Map();
const waiting = [];
let running = 0;

// `look` may name a part, the offset in it and the number of characters.
export function lookAt(url, look = {}) {
  const address = `${url}/preview?${query(look)}`;
  if (!known.has(address)) remember(address, new Promise((resolve, reject) => take(() => call("GET", address).then(resolve, reject))));
  return known.get(address);
}

const acts = new WeakMap();
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    acts.get(target)();
  }
}, { root: byId("log"), rootMargin: AHEAD });

export function whenSeen(node, act) {
  acts.set(node, act);
  observer.observe(node);
}

// A failure may not recur.
function remember(address, answer) {
  known.set(address, answer);
  answer.then(({ kind }) => kind === "failed" && known.delete(address), () => known.delete(address));
  if (known.size > KEPT) known.delete(known.keys().next().value);
}

function take(ask) {
  waiting.push(ask);
  next();
}

async function next() {
  if (running >= AT_ONCE || !waiting.length) return;
  running += 1;
  await waiting.shift()();
  running -= 1;
  next();
}
