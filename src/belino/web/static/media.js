// Shows the media of a message: pictures in a reserved place, players, and cards for everything else.
import { iconFor, isPicture } from "./attachments.js";
import { button, make, say } from "./dom.js";
import * as format from "./format.js";
import { glance } from "./glances.js";
import { icon } from "./icons.js";
import { nameOf } from "./names.js";

const TALLEST = 420;
const WIDEST = 460;
const SMALLEST = 56;
const UNKNOWN = { width: 320, height: 240 };
const CANNOT_PLAY = "This browser cannot play it; download it instead";

// `does` holds a bubble's actions; see bubble.js.
export function mediaNodes({ media, author }, does) {
  if (!media.length) return [];
  // What the agent says aloud it also writes.
  const read = (item, options) => panel(item, does, { quiet: author.is_agent && item.kind === "voice", ...options });
  const pictures = media.filter((item) => isPicture(item.mime) && item.url);
  const others = media.filter((item) => !pictures.includes(item));
  const nodes = others.map((item) => player(item, does, read) ?? card(item, does, read(item)));
  if (pictures.length) {
    const many = pictures.length > 1;
    // Below an album only what was read is shown; one of its pictures is read in the viewer.
    const panels = pictures.map((item) => read(item, many ? { quiet: true, named: true } : {})?.node);
    nodes.unshift(make("div", { class: many ? "pictures many" : "pictures" }, ...pictures.map((item) => picture(item, pictures, many, does))), ...panels.filter(Boolean));
  }
  return [make("div", { class: "media" }, ...nodes)];
}

function picture(item, all, many, does) {
  const name = item.file_name || "Picture";
  const { width, height } = room(item);
  const image = make("img", { alt: item.alt || item.caption || name, src: item.url, width, height, decoding: "async" });
  const frame = button(`Open ${name}`, { class: "picture", onclick: () => does.open(all, all.indexOf(item)) }, image);
  if (!many) {
    frame.style.setProperty("width", `${width}px`);
    frame.style.setProperty("aspect-ratio", `${width} / ${height}`);
  }
  if (item.local) frame.disabled = true;
  image.addEventListener("error", () => frame.replaceWith(card({ ...item, reason: item.reason || (shows(item) ? "" : "cannot be shown here") }, does)));
  return frame;
}

// The place of a picture, known before its first byte, so that nothing moves when it arrives.
function room(item) {
  const { width, height } = item.width && item.height ? item : UNKNOWN;
  const scale = Math.min(1, WIDEST / width, TALLEST / height);
  return { width: Math.max(SMALLEST, Math.round(width * scale)), height: Math.max(SMALLEST, Math.round(height * scale)) };
}

// What was read from it, and buttons to read it. Without its bytes there is nothing to read.
const panel = (item, does, options) => (item.url && item.ref && !item.local ? does.readings.panel(item, options) : null);

function player(item, does, read) {
  if (!item.url || item.local) return null;
  if (item.mime.startsWith("audio/")) return heard(item, does, read);
  return item.mime.startsWith("video/") ? watched(item, does, read) : null;
}

function heard(item, does, read) {
  const line = fileLine(item);
  const audio = make("audio", { controls: true, preload: "none", src: item.url, "aria-label": nameOf(item) });
  const seen = shows(item) ? glance(item, does, ({ seconds }) => lasts(line, item, seconds)) : null;
  audio.addEventListener("timeupdate", () => seen?.style.setProperty("--played", `${(100 * audio.currentTime) / lengthOf(audio, item) || 0}%`));
  audio.addEventListener("error", () => trouble(line, CANNOT_PLAY));
  return make("figure", { class: "player" }, make("figcaption", {}, line), seen, audio, read(item, { player: audio })?.node);
}

// A recording of a browser does not say how long it is.
const lengthOf = ({ duration }, item) => (Number.isFinite(duration) ? duration : item.duration);

// The player itself shows the poster; nothing of the video is loaded before it is played.
function watched(item, does, read) {
  const line = fileLine(item);
  const { width, height } = room(item);
  const video = make("video", { controls: true, preload: shows(item) ? "none" : "metadata", src: item.url, width, height, "aria-label": nameOf(item) });
  video.style.setProperty("aspect-ratio", `${width} / ${height}`);
  video.addEventListener("error", () => trouble(line, CANNOT_PLAY));
  const seen = shows(item) ? glance(item, does, (found, place) => {
    if (found.kind !== "poster") return;
    video.poster = found.picture;
    lasts(line, item, found.seconds);
    place.remove();
  }) : null;
  seen?.classList.add("hushed");
  return make("figure", { class: "player" }, video, make("figcaption", {}, line, seen), read(item, { player: video })?.node);
}

function card(item, does, readings = null) {
  const line = fileLine(item);
  const problem = item.reason || (item.url || item.local ? "" : missing(item.outcome));
  if (problem) trouble(line, problem, item.outcome === "referenced");
  if (!item.url && !item.local && item.ref) line.append(fetchButton(item, does, line));
  const learned = ({ kind, text, picture: scan, seconds }) => {
    lasts(line, item, seconds);
    if (kind === "text" && !text && scan) readings?.scanned();
  };
  return make("div", { class: "file" }, line, shows(item) ? glance(item, does, learned) : null, readings?.node);
}

const shows = (item) => Boolean(item.preview && item.url && !item.local);

function fileLine(item) {
  const name = nameOf(item);
  return make("div", { class: "file-line" },
    make("span", { class: "file-icon" }, icon(iconFor(item.mime))),
    make("span", { class: "file-words" }, make("span", { class: "file-name", text: name }), make("span", { class: "file-facts", text: factsOf(item) })),
    item.url && !item.local ? make("a", { class: "icon-button", href: item.url, download: item.file_name || name, "aria-label": `Download ${name}` }, icon("download")) : null);
}

// Viewing fetches nothing; this button does.
function fetchButton(item, does, line) {
  const fetching = button(`Fetch ${nameOf(item)}`, { class: "button fetch-button" }, "Fetch");
  fetching.addEventListener("click", async () => {
    if (fetching.getAttribute("aria-disabled")) return;
    fetching.setAttribute("aria-disabled", "true");
    trouble(line, "Fetching…", true);
    try {
      await does.fetch(item);
    } catch (error) {
      trouble(line, error.message);
      fetching.removeAttribute("aria-disabled");
    }
  });
  return fetching;
}

function trouble(line, text, promise = false) {
  const words = line.querySelector(".file-words");
  const told = words.querySelector(".file-told") ?? words.appendChild(make("span", {}));
  told.className = `file-told ${promise ? "file-promise" : "file-trouble"}`;
  say(told, text);
}

function lasts(line, item, seconds) {
  if (seconds != null && item.duration == null) say(line.querySelector(".file-facts"), factsOf({ ...item, duration: seconds }));
}

const factsOf = (item) => [item.duration == null ? "" : format.duration(item.duration), format.size(item.size), typeOf(item)].filter(Boolean).join(" · ");

// For long vendor types, the file extension tells a person more.
function typeOf({ mime, file_name: name }) {
  const ending = mime.startsWith("application/vnd.") && /\.(\w{1,8})$/.exec(name ?? "");
  return ending ? ending[1].toUpperCase() : mime;
}

function missing(outcome) {
  if (outcome === "referenced") return "Not fetched yet";
  return outcome && outcome !== "held" ? `Not here: ${outcome}` : "";
}
