// Links in messages: if the text does not plainly name the host, the host is shown beside it.
import { make } from "./dom.js";

// Other letters may reverse the text, or imitate those of another host.
const PLAIN = /^[\x21-\x7e\p{Script=Latin}]+$/u;

// Only web addresses are linked. User name and password are removed: they imitate a host, or are secret.
export function anchorTo(address, words) {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  const url = new URL(address);
  const hasUser = Boolean(url.username || url.password);
  url.username = url.password = "";
  const anchor = make("a", { href: hasUser ? url.href : address, target: "_blank", rel: "noopener noreferrer" }, make("bdi", { text: words }));
  if (hasUser || !names(words, url.host)) anchor.append(" ", make("bdi", { class: "host", dir: "ltr", text: `(${url.host})` }));
  return anchor;
}

// Compared literally with the host as browsers resolve it: lower case, international names as xn--….
function names(words, host) {
  const rest = words.toLowerCase().replace(/^https?:\/\//, "");
  return PLAIN.test(words) && rest.startsWith(host) && /^(?:[/?#]|$)/.test(rest.slice(host.length));
}
