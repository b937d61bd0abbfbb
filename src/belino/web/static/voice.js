// The recording bar of the composer: level, length, discard and send.
import { byId, make, say, show } from "./dom.js";
import * as format from "./format.js";
import { LONGEST_SECONDS, Recording } from "./record.js";

const EVERY_MS = 100;
const BARS = 64;
const LAST_SECONDS = 60;
const SILENT_SECONDS = 3;

export class Voice {
  #bar = byId("recording");
  #row = byId("composer-row");
  #button = byId("record");
  #note = byId("recording-note");
  #bars = Array.from({ length: BARS }, () => make("i"));
  #recording = null;
  #starting = 0;
  #timer = 0;
  #heard = false;
  #conversation = null;
  #limitBytes;
  #done;

  // `done` receives { conversation, file, seconds, send }: `send` is false if the recording is only kept.
  constructor(limitBytes, done) {
    this.#limitBytes = limitBytes;
    this.#done = done;
    byId("recording-level").append(...this.#bars);
    byId("recording-limit").textContent = `of ${format.duration(LONGEST_SECONDS)}`;
    this.#button.addEventListener("click", () => this.#begin());
    byId("recording-cancel").addEventListener("click", () => this.cancel());
    byId("recording-send").addEventListener("click", () => this.#finish(true));
    this.#bar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.cancel();
    });
    window.addEventListener("beforeunload", (event) => this.#recording && event.preventDefault());
  }

  // Another conversation is opened: what was recorded stays in its own, unsent.
  open(conversation, possible) {
    this.#starting += 1;
    this.keep();
    this.#conversation = conversation;
    say(this.#note, "");
    show(this.#button, possible);
  }

  // A message was sent: an old refusal is no longer of interest.
  hush() {
    if (!this.#recording) say(this.#note, "");
  }

  keep() {
    if (this.#recording) this.#finish(false);
  }

  cancel() {
    this.#starting += 1;
    this.#recording?.cancel();
    this.#close();
    say(this.#note, "");
    this.#button.focus();
  }

  async #begin() {
    if (this.#button.getAttribute("aria-disabled")) return;
    const starting = ++this.#starting;
    this.#button.setAttribute("aria-disabled", "true");
    say(this.#note, "Waiting for the microphone…");
    try {
      const recording = await Recording.begin(this.#limitBytes);
      if (starting === this.#starting) this.#show(recording);
      else recording.cancel();
    } catch (error) {
      if (starting === this.#starting) say(this.#note, error.message);
    } finally {
      this.#button.removeAttribute("aria-disabled");
    }
  }

  #show(recording) {
    this.#recording = recording;
    recording.addEventListener("ended", ({ detail }) => this.#ended(detail));
    for (const bar of this.#bars) bar.style.setProperty("height", "0%");
    this.#heard = false;
    this.#bar.dataset.state = "recording";
    show(this.#row, false);
    show(this.#bar, true);
    byId("recording-send").focus();
    this.#timer = setInterval(() => this.#tick(), EVERY_MS);
    this.#tick();
  }

  #tick() {
    const { seconds, level } = this.#recording;
    this.#time(seconds);
    if (level !== null) this.#meter(level);
    // What cannot be measured is not called silent, nor is a pause.
    this.#heard ||= level !== 0;
    say(this.#note, this.#words(seconds));
    this.#recording.check();
  }

  #words(seconds) {
    if (!this.#heard && seconds > SILENT_SECONDS) return "The microphone is silent: check that it is on";
    return LONGEST_SECONDS - seconds < LAST_SECONDS ? "Recording, less than a minute is left" : "Recording";
  }

  #time(seconds) {
    byId("recording-time").textContent = format.stamp(seconds);
  }

  // The newest level is at the end; the others move on.
  #meter(level) {
    this.#bars.push(this.#bars.shift());
    byId("recording-level").append(this.#bars.at(-1));
    this.#bars.at(-1).style.setProperty("height", `${Math.round(100 * level)}%`);
  }

  // It stopped by itself: the reader decides what becomes of it.
  #ended(reason) {
    clearInterval(this.#timer);
    this.#bar.dataset.state = "ended";
    this.#time(this.#recording.seconds);
    say(this.#note, `${reason} Send the recording or discard it.`);
  }

  async #finish(send) {
    const recording = this.#recording;
    const conversation = this.#conversation;
    if (!recording) return;
    this.#close();
    say(this.#note, "");
    const file = await recording.finish();
    if (file.size) this.#done({ conversation, file, seconds: recording.seconds, send });
    else say(this.#note, "Nothing was recorded: check the microphone, then try again.");
  }

  #close() {
    clearInterval(this.#timer);
    this.#recording = null;
    show(this.#bar, false);
    show(this.#row, true);
  }
}
