// Draws one message: author, text, media, and the line below with time, state and "why?".
import { isPicture } from "./attachments.js";
import { choices, withoutChoice } from "./choices.js";
import { make, spoken } from "./dom.js";
import * as format from "./format.js";
import { render } from "./markdown.js";
import { mediaNodes } from "./media.js";
import { inShort } from "./names.js";
import { parcelWords, sendWords } from "./parcels.js";

// `does` holds a bubble's actions: why(message), open(pictures, index), read(item), fetch(item), retry(id), edit(id),
// discard(id), ask(message), press(message, key), answerAgain(message), sendParcel(key), dropParcel(key). `does.readings` is what was read.
// `place` is the conversation's platform, and the author under which the reader speaks there.
// `answered` is the replied-to message, if it is on the page; `media` are its media, if already drawn.
export function bubble(message, does, place, { answered, media }) {
  return make("article", { class: `message ${side(message, place)}`, "data-id": message.id, "data-state": message.state ?? "stored" },
    make("p", { class: "author" }, message.author.name || message.author.id, spoken(" wrote:")),
    quote(answered),
    ...(media ? [media] : mediaNodes(message, does)),
    words(message),
    choices(message, does, place),
    reactions(message),
    meta(message, does, place),
  );
}

// The agent is "theirs", the reader "mine"; other platforms have other people too.
function side({ author }, { platform, visitor }) {
  if (author.is_agent) return "theirs";
  return platform === "web" || author.id === "me" || author.id === visitor ? "mine" : "others";
}

const SNIPPET = 80;

function quote(answered) {
  if (!answered) return null;
  const picture = answered.media.find((item) => isPicture(item.mime) && item.url);
  const said = inShort(answered);
  return make("p", { class: "quote" },
    picture ? make("img", { src: picture.url, alt: "", decoding: "async" }) : null,
    make("span", { class: "quote-words" }, spoken("In reply to "), make("strong", { text: answered.author.name }), make("span", { text: said.length > SNIPPET ? `${said.slice(0, SNIPPET)}…` : said })),
  );
}

function words(message) {
  if (message.deleted) return make("div", { class: "words gone", text: "This message was deleted." });
  if (message.choice) return make("div", { class: "words", dir: "auto", text: message.text });
  const text = withoutChoice(message);
  return text ? make("div", { class: "words" }, render(text)) : null;
}

function reactions({ reactions: all = [] }) {
  if (!all.length) return null;
  return make("p", { class: "reactions", "aria-label": "Reactions" }, ...all.map(([emoji, times]) => make("span", { text: times > 1 ? `${emoji} ${times}` : emoji })));
}

function meta(message, does, place) {
  const line = make("p", { class: "meta" }, make("time", { datetime: message.sent, title: format.fullTime(message.sent), text: format.time(message.sent) }));
  // The edit that shows a choice is none of the author's.
  if (message.edited && withoutChoice(message) === message.text) line.append(make("span", { text: "edited" }));
  for (const part of message.state ? unsent(message, does) : stored(message, does, place)) line.append(part);
  return line;
}

function unsent(message, does) {
  if (message.parcel) return answer(message.parcel, does);
  if (message.state === "sending") return [make("span", { class: "sending", text: "Sending…" })];
  const act = (text, onclick) => make("button", { type: "button", class: "text-button", text, onclick });
  return [
    make("span", { class: "trouble", text: `Not sent: ${message.reason}` }),
    act("Try again", () => does.retry(message.id)),
    // Its files are already with the gateway and cannot return to the composer.
    ...(message.media.length ? [] : [act("Edit", () => does.edit(message.id))]),
    act("Discard", () => does.discard(message.id)),
  ];
}

// A message of the agent that is not delivered, or not yet.
function answer(parcel, does) {
  const says = make("span", { class: parcel.state === "sending" ? "sending" : "trouble", text: parcelWords(parcel) });
  if (parcel.state === "sending" || (parcel.state === "ready" && !parcel.reason)) return [says];
  return [
    says,
    make("button", { type: "button", class: "text-button send-parcel", text: sendWords(parcel), onclick: () => does.sendParcel(parcel.key) }),
    make("button", { type: "button", class: "text-button drop-parcel", text: "Drop", onclick: () => does.dropParcel(parcel.key) }),
  ];
}

function stored(message, does, place) {
  const note = outcomeNote(message, place);
  const why = make("button", { type: "button", class: "text-button why-button", text: "Why?", "aria-haspopup": "dialog", onclick: () => does.why(message) });
  why.append(spoken(` What happened to the message of ${format.time(message.sent)}`));
  const says = note && make("span", { class: note.bad ? "trouble" : "", text: note.text });
  return [says, again(message, does, says), spent(message), askButton(message, does, place), why].filter(Boolean);
}

// A failed message is answered again on request; `says` shows a refusal.
function again(message, does, says) {
  if (message.outcome !== "failed" || message.author.is_agent || message.deleted) return null;
  const trying = make("button", { type: "button", class: "text-button again-button", text: "Try again" }, spoken(` to answer the message of ${format.time(message.sent)}`));
  trying.addEventListener("click", async () => {
    if (trying.getAttribute("aria-disabled")) return;
    trying.setAttribute("aria-disabled", "true");
    try {
      await does.answerAgain(message);
    } catch (error) {
      says.setAttribute("role", "alert");
      says.textContent = `Not answered: ${error.message}`;
      trying.removeAttribute("aria-disabled");
    }
  });
  return trying;
}

// The cost of the turn that ended with this message.
function spent({ usage }) {
  if (!usage) return null;
  const money = usage.cost_usd == null ? "" : ` · ${format.money(usage.cost_usd)}`;
  const title = `${format.number(usage.input_tokens)} tokens read, ${format.number(usage.output_tokens)} written${usage.model ? `, by ${usage.model}` : ""}`;
  return make("span", { class: "usage", title, text: `${format.number(usage.input_tokens + usage.output_tokens)} tokens${money}` }, spoken(` ${title}`));
}

// Where the reader may write, one click asks about media.
function askButton(message, does, { visitor }) {
  if (!visitor || !message.media.length || message.author.is_agent) return null;
  return make("button", { type: "button", class: "text-button ask-button", text: "Ask about it", onclick: () => does.ask(message) }, spoken(` Ask about the ${message.media[0].kind} of ${message.author.name}`));
}

// A stored reason explains the access decision; the answer and "why?" explain why a turn failed.
function outcomeNote({ author, outcome, reason, standing, delivery, delivery_reason: odd }, { platform }) {
  if (outcome === "failed") return { text: "Not answered", bad: true };
  if (outcome === "aborted") return { text: "Stopped", bad: false };
  if (outcome === "chose silence") return { text: "Chose not to answer", bad: false };
  if (outcome === "waiting") return { text: "Waiting", bad: false };
  if (outcome === "unsupported") return { text: `Not supported: ${reason}`, bad: true };
  // In a group nearly nothing is.
  if (standing === "observed" && platform === "web") return { text: "Not meant for the agent", bad: false };
  if (delivery === "dead") return { text: odd ? `Not delivered: ${odd}` : "Not delivered", bad: true };
  if (odd) return { text: `Sent; ${odd}`, bad: true };
  // On our own page, visible means sent.
  return author.is_agent && platform !== "web" ? { text: "Sent", bad: false } : null;
}
