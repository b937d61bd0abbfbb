// Shows the media of a message: pictures in a reserved place, players, and cards for everything else.
import { iconFor, isPicture } from "./attachments.js";
import { button, make } from "./dom.js";
import * as format from "./format.js";
import { icon } from "./icons.js";

const TALLEST = 420;
const WIDEST = 460;
const SMALLEST = 56;
const UNKNOWN = { width: 320, height: 240 };

export function mediaNodes(media, openPicture) {
  if (!media.length) return [];
  const pictures = media.filter((item) => isPicture(item.mime) && item.url);
  const others = media.filter((item) => !pictures.includes(item));
  const nodes = others.map((item) => player(item) ?? card(item));
  if (pictures.length) {
    const many = pictures.length > 1;
    nodes.unshift(make("div", { class: many ? "pictures many" : "pictures" }, ...pictures.map((item) => picture(item, pictures, many, openPicture))));
  }
  return [make("div", { class: "media" }, ...nodes)];
}

function picture(item, all, many, openPicture) {
  const name = item.file_name || "Picture";
  const { width, height } = room(item);
  const image = make("img", { alt: item.caption || name, src: item.url, width, height, decoding: "async" });
  const frame = button(`Open ${name}`, { class: "picture", onclick: () => openPicture(all, all.indexOf(item)) }, image);
  if (!many) {
    frame.style.setProperty("width", `${width}px`);
    frame.style.setProperty("aspect-ratio", `${width} / ${height}`);
  }
  if (item.local) frame.disabled = true;
  image.addEventListener("error", () => frame.replaceWith(card({ ...item, reason: item.reason || "cannot be shown here" })));
  return frame;
}

// The place a picture will take, known before its first byte, so that nothing moves when it comes.
function room(item) {
  const { width, height } = item.width && item.height ? item : UNKNOWN;
  const scale = Math.min(1, WIDEST / width, TALLEST / height);
  return { width: Math.max(SMALLEST, Math.round(width * scale)), height: Math.max(SMALLEST, Math.round(height * scale)) };
}

function player(item) {
  const name = item.file_name || item.kind;
  if (!item.url || item.local) return null;
  if (item.mime.startsWith("audio/")) {
    const audio = make("audio", { controls: true, preload: "none", src: item.url, "aria-label": name });
    return make("figure", { class: "player" }, make("figcaption", {}, make("span", { class: "file-name", text: name }), facts(item)), audio);
  }
  if (!item.mime.startsWith("video/")) return null;
  const { width, height } = room(item);
  const video = make("video", { controls: true, preload: "metadata", src: item.url, width, height, "aria-label": name });
  video.style.setProperty("aspect-ratio", `${width} / ${height}`);
  return make("figure", { class: "player" }, video, make("figcaption", {}, make("span", { class: "file-name", text: name }), facts(item)));
}

function card(item) {
  const name = item.file_name || item.kind.replace(/^./, (first) => first.toUpperCase());
  const words = make("span", { class: "file-words" }, make("span", { class: "file-name", text: name }), facts(item));
  const trouble = item.reason || (item.url || item.local ? "" : missing(item.outcome));
  const promise = trouble && item.outcome === "referenced";
  if (trouble) words.append(make("span", { class: promise ? "file-promise" : "file-trouble", text: trouble }));
  const inside = [make("span", { class: "file-icon" }, icon(iconFor(item.mime))), words];
  if (!item.url || item.local) return make("div", { class: "file" }, ...inside);
  return make("a", { class: "file", href: item.url, download: name, "aria-label": `Download ${name}` }, ...inside, icon("download"));
}

function facts(item) {
  const known = [item.duration == null ? "" : format.duration(item.duration), format.size(item.size), item.mime];
  return make("span", { class: "file-facts", text: known.filter(Boolean).join(" · ") });
}

function missing(outcome) {
  if (outcome === "referenced") return "Not fetched yet";
  return outcome && outcome !== "held" ? `Not here: ${outcome}` : "";
}
