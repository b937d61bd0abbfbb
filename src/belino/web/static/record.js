// Records the microphone: asks for it, measures how loud it is, and ends with a file.
import * as format from "./format.js";

// Ten minutes of speech are under 4 MB.
export const LONGEST_SECONDS = 600;
const BITS_PER_SECOND = 48_000;
const PIECE_MS = 1000;
const TYPES = { "audio/webm;codecs=opus": "webm", "audio/ogg;codecs=opus": "ogg", "audio/mp4": "m4a", "audio/webm": "webm" };
// From a whisper to a shout, in decibels below full scale.
const FAINT = -55;
const LOUD = -10;

const REASONS = {
  NotAllowedError: "The microphone is not allowed here: allow it for this page in the browser’s settings, then try again.",
  NotFoundError: "There is no microphone: connect one, then try again.",
  NotReadableError: "The microphone cannot be opened: another program may be using it.",
  AbortError: "The microphone stopped working: connect it again, then try again.",
};
const INSECURE = "Browsers lend the microphone only to pages of this machine or with https: open belino at localhost or behind TLS.";
const UNABLE = "This browser cannot record sound: attach a file instead.";

// `ended` is dispatched if it stops by itself, with the reason.
export class Recording extends EventTarget {
  #stream;
  #recorder;
  #context;
  #analyser;
  #samples;
  #pieces = [];
  #bytes = 0;
  #limit;
  #begun;
  #seconds = null;

  // Throws an error whose message is meant for the reader.
  static async begin(limitBytes) {
    if (!window.isSecureContext) throw new Error(INSECURE);
    if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) throw new Error(UNABLE);
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } catch ({ name, message }) {
      throw new Error(REASONS[name] ?? `The microphone cannot be used: ${message || name}`);
    }
    try {
      return new Recording(stream, limitBytes);
    } catch {
      for (const track of stream.getTracks()) track.stop();
      throw new Error(UNABLE);
    }
  }

  constructor(stream, limitBytes) {
    super();
    this.#stream = stream;
    this.#limit = limitBytes;
    const mimeType = Object.keys(TYPES).find((type) => MediaRecorder.isTypeSupported(type));
    this.#recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
    this.#recorder.addEventListener("dataavailable", ({ data }) => this.#take(data));
    stream.getAudioTracks()[0].addEventListener("ended", () => this.#end("The microphone was disconnected."));
    this.#listen();
    this.#begun = performance.now();
    this.#recorder.start(PIECE_MS);
  }

  get seconds() {
    return this.#seconds ?? (performance.now() - this.#begun) / 1000;
  }

  // From 0 to 1; null if it cannot be measured.
  get level() {
    if (this.#context?.state !== "running") return null;
    this.#analyser.getFloatTimeDomainData(this.#samples);
    const power = this.#samples.reduce((sum, sample) => sum + sample * sample, 0) / this.#samples.length;
    return Math.min(1, Math.max(0, (10 * Math.log10(power || 1e-12) - FAINT) / (LOUD - FAINT)));
  }

  // To be called while it runs: the limit is checked here.
  check() {
    if (this.#seconds === null && this.seconds >= LONGEST_SECONDS) this.#end(`The limit of ${format.duration(LONGEST_SECONDS)} is reached.`);
  }

  async finish() {
    await this.#stop();
    const type = this.#recorder.mimeType || "audio/webm";
    const ending = TYPES[type] ?? TYPES[Object.keys(TYPES).find((known) => type.startsWith(known.split(";")[0]))] ?? "webm";
    return new File(this.#pieces, `voice-message.${ending}`, { type });
  }

  cancel() {
    this.#stop();
    this.#pieces = [];
  }

  #listen() {
    if (!window.AudioContext) return;
    this.#context = new AudioContext();
    this.#analyser = this.#context.createAnalyser();
    this.#samples = new Float32Array(this.#analyser.fftSize);
    this.#context.createMediaStreamSource(this.#stream).connect(this.#analyser);
  }

  #take(data) {
    if (data.size) this.#pieces.push(data);
    this.#bytes += data.size;
    // The next piece must still fit.
    if (this.#seconds === null && this.#bytes + 2 * data.size > this.#limit) this.#end(`The limit of ${format.size(this.#limit)} is reached.`);
  }

  #end(reason) {
    if (this.#seconds !== null) return;
    this.#stop();
    this.dispatchEvent(new CustomEvent("ended", { detail: reason }));
  }

  // Resolves when the last piece is there. The microphone is released at once, and the browser shows that it is.
  async #stop() {
    this.#seconds ??= Math.min(this.seconds, LONGEST_SECONDS);
    const last = this.#recorder.state === "inactive" ? null : new Promise((resolve) => this.#recorder.addEventListener("stop", resolve, { once: true }));
    if (last) this.#recorder.stop();
    for (const track of this.#stream.getTracks()) track.stop();
    this.#context?.close().catch(() => {});
    this.#context = null;
    await last;
  }
}
