// Links in messages: one whose words do not plainly name its host shows that host beside them.
import { make } from "./dom.js";

// Other letters may turn the words round, or pass for those of another host.
const PLAIN = /^[\x21-\x7e\p{Script=Latin}]+$/u;

// Only web addresses are linked. A name and password in one is left out: it is there to look like a host, or is a secret.
export function anchorTo(address, words) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  const url = new URL(address);
  const hasUser = Boolean(url.username || url.password);
  url.username = url.password = "";
  const anchor = make("a", { href: hasUser ? url.href : address, target: "_blank", rel: "noopener noreferrer" }, make("bdi", { text: words }));
  if (hasUser || !names(words, url.host)) anchor.append(" ", make("bdi", { class: "host", dir: "ltr", text: `(${url.host})` }));
  return anchor;
}

// Compared letter by letter with the host as browsers resolve it: lower case, international names as xn--….
function names(words, host) {
  const rest = words.toLowerCase().replace(/^https?:\/\//, "");
  return PLAIN.test(words) && rest.startsWith(host) && /^(?:[/?#]|$)/.test(rest.slice(host.length));
}
