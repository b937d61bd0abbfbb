// Draws a transcript line by line; a time stamp plays the sound from there, and the line being spoken is marked.
import { button, make } from "./dom.js";
import * as format from "./format.js";

const TO_THE_END = 1e9;

export function transcript(segments, player) {
  const lines = segments.map((segment, at) => line(segment, segments[at - 1]?.speaker, player));
  if (player) player.ontimeupdate = () => mark(lines, segments, player);
  return make("ol", { class: "transcript" }, ...lines);
}

function line({ start, text, speaker }, before, player) {
  const at = format.stamp(start);
  const place = player
    ? button(`Play from ${at}`, { class: "stamp", onclick: () => playFrom(player, start) }, at)
    : make("span", { class: "stamp", text: at });
  const who = speaker && speaker !== before ? make("strong", { text: `${speaker}: ` }) : null;
  return make("li", {}, place, make("span", { class: "line-words", dir: "auto" }, who, text));
}

async function playFrom(player, start) {
  try {
    if (player.readyState === HTMLMediaElement.HAVE_NOTHING) await load(player);
    // A recording of a browser does not say how long it is; it can be searched once its end was looked for.
    if (player.duration === Infinity) await seek(player, TO_THE_END);
    await seek(player, start);
    await player.play();
  } catch {
    // The player itself says why it cannot play.
  }
}

function load(player) {
  const loaded = once(player, "loadedmetadata");
  player.preload = "metadata";
  player.load();
  return loaded;
}

function seek(player, seconds) {
  const arrived = once(player, "seeked");
  player.currentTime = seconds;
  return arrived;
}

const once = (player, name) => new Promise((resolve, reject) => {
  player.addEventListener(name, resolve, { once: true });
  player.addEventListener("error", reject, { once: true });
});

function mark(lines, segments, player) {
  const now = player.ended ? -1 : segments.findLastIndex(({ start }) => start <= player.currentTime + 0.05);
  lines.forEach((one, at) => {
    if (at === now) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  });
}
