// Draws the preview of a file into a reserved place, so that nothing moves when it arrives.
import { make, spoken } from "./dom.js";
import * as format from "./format.js";
import { lookAt, whenSeen } from "./previews.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const CHARS = 600;
const LOWEST = 4;

// `learned` receives the result, once it is known. Late results are not announced.
export function glance(item, does, learned = () => {}) {
  const place = make("div", { class: "glance", "data-preview": item.preview, "aria-live": "off", "aria-busy": "true" });
  whenSeen(place, async () => {
    const seen = await lookAt(item.url, item.preview === "text" ? { chars: CHARS } : {}).catch(({ message }) => ({ kind: "failed", reason: message }));
    place.dataset.kind = seen.kind;
    place.replaceChildren(...drawn(seen, item, does));
    place.removeAttribute("aria-busy");
    learned(seen, place);
  });
  return place;
}

function drawn(seen, item, does) {
  if (seen.kind === "text" || seen.kind === "listing") return words(seen, item, does);
  if (seen.kind === "waveform") return seen.heights.length ? [wave(seen)] : [reason(`No waveform: ${seen.reason}`, true)];
  if (seen.kind === "picture" || seen.kind === "poster") return [picture(seen.picture, item, () => does.open([{ ...item, ...seen, url: seen.picture, original: item.url }], 0))];
  return [reason(seen.kind === "failed" ? `No preview: ${seen.reason}` : seen.reason, seen.kind === "failed")];
}

function words(seen, item, does) {
  const name = item.file_name || "this file";
  const read = () => does.read(item);
  const first = seen.text
    ? make("p", { class: inRows(seen, item) ? "glance-words rows" : "glance-words", text: seen.text, onclick: read })
    : seen.picture ? picture(seen.picture, item, read) : make("p", { class: "glance-words quiet", text: "There is no text here." });
  const line = make("p", { class: "glance-line" }, make("span", { text: placeOf(seen) }),
    make("button", { type: "button", class: "text-button read-button", "aria-haspopup": "dialog", onclick: read }, seen.kind === "listing" ? "Look inside" : "Read", spoken(` ${name}`)));
  return [first, line];
}

const picture = (url, item, open) => {
  const name = item.file_name || "the file";
  const image = make("img", { src: url, alt: "", decoding: "async" });
  const frame = make("button", { type: "button", class: "glance-picture", "aria-label": `Open a picture of ${name}`, onclick: open }, image);
  image.addEventListener("error", () => frame.replaceWith(reason("No preview: there is no picture of it", true)));
  return frame;
};

const reason = (text, bad) => make("p", { class: bad ? "file-trouble" : "quiet", text });

// Columns align only in a fixed-width font.
export const inRows = ({ kind, unit }, { mime }) => kind === "listing" || unit === "sheet" || /^text\/(csv|tab-separated-values)$/.test(mime);

const UNITS = { page: "Page", sheet: "Sheet", slide: "Slide", chapter: "Chapter", part: "Part", entry: "Part" };
const capital = (text) => text.replace(/^./, (first) => first.toUpperCase());

export const unitOf = ({ unit }) => UNITS[unit] ?? "Part";

// "Page 1 of 12"; for a listing, the range of entries.
export function placeOf({ kind, unit, part, parts, title, notes }) {
  if (kind === "listing") return capital(title || notes[0] || "");
  if (parts > 1) return `${unitOf({ unit })} ${part} of ${parts}`;
  return unit === "part" ? "" : `1 ${unit}`;
}

// The same bars twice: the played ones are drawn over the others up to the current position.
function wave({ heights, seconds }) {
  const label = seconds == null ? "Waveform" : `Waveform, ${format.duration(seconds)}`;
  return make("div", { class: "wave", role: "img", "aria-label": label }, bars(heights), bars(heights));
}

function bars(heights) {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("viewBox", `0 0 ${3 * heights.length - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(NAMESPACE, "path");
  const tall = heights.map((height) => Math.max(LOWEST, height));
  path.setAttribute("d", tall.map((height, at) => `M${3 * at} ${50 - height / 2}h2v${height}h-2z`).join(""));
  svg.append(path);
  return svg;
}
