// Shows the files of the message being written as chips with picture, progress, reason and remove.
import { byId, iconButton, make, say, show } from "./dom.js";
import * as format from "./format.js";
import { icon } from "./icons.js";

export const PER_MESSAGE = 32;
const SHOWN_AS_IMAGE = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

export class Attachments {
  #uploads;
  #list = byId("attachments");
  #chips = new Map();
  #conversation = null;
  #onchange;

  constructor(uploads, onchange) {
    this.#uploads = uploads;
    this.#onchange = onchange;
    uploads.addEventListener("changed", ({ detail }) => this.#update(detail));
    uploads.addEventListener("removed", ({ detail }) => this.#remove(detail.key));
  }

  open(conversation) {
    this.#conversation = conversation;
    for (const key of [...this.#chips.keys()]) this.#remove(key);
    for (const item of this.#uploads.of(conversation)) this.#update(item);
    this.#settle();
  }

  add(files) {
    for (const file of files) this.#uploads.add(this.#conversation, file);
  }

  addVoice(conversation, file, seconds) {
    this.#uploads.add(conversation, file, { voice: true, duration: Math.round(10 * seconds) / 10 });
  }

  get items() {
    return this.#uploads.of(this.#conversation);
  }

  get busy() {
    return this.items.some((item) => item.state !== "done" && item.state !== "failed");
  }

  get failed() {
    return this.items.filter((item) => item.state === "failed").length;
  }

  get ready() {
    return this.items.filter((item) => item.state === "done");
  }

  // The number of files over the limit of this message.
  get left() {
    return Math.max(0, this.items.length - this.failed - PER_MESSAGE);
  }

  refresh() {
    this.#uploads.refresh(this.#conversation);
  }

  // Finished uploads leave with the message, up to its limit; the rest, and failed ones, stay visible.
  take() {
    return this.ready.slice(0, PER_MESSAGE).map((item) => {
      const { preview, width, height } = this.#chips.get(item.key) ?? {};
      if (this.#chips.has(item.key)) this.#chips.get(item.key).preview = null;
      this.#uploads.remove(item.key, { keepBytes: true });
      const { upload_id, mime, size, voice, duration } = item;
      return { upload_id, file_name: format.name(item.name), mime, size, voice, duration, preview, width, height };
    });
  }

  #update(item) {
    if (item.conversation !== this.#conversation) return;
    const chip = this.#chips.get(item.key) ?? this.#add(item);
    const percent = item.size ? Math.floor((100 * item.offset) / item.size) : 0;
    chip.node.dataset.state = item.state;
    chip.bar.value = item.state === "done" ? 100 : percent;
    show(chip.bar, item.state !== "done" && item.state !== "failed");
    show(chip.retry, item.state === "failed" && item.upload_id !== null);
    say(chip.status, statusOf(item, percent));
    this.#settle();
  }

  #add(item) {
    const name = item.voice ? `Voice message, ${format.duration(item.duration)}` : format.name(item.name);
    const chip = { node: null, preview: null };
    chip.bar = make("progress", { max: 100, "aria-label": `Upload of ${name}` });
    chip.status = make("span", { class: "chip-status" });
    chip.retry = iconButton("retry", `Upload ${name} again`, () => this.#uploads.retry(item.key));
    chip.node = make("li", { class: "chip", "data-file": item.name },
      this.#thumbnail(item, chip),
      make("div", { class: "chip-words" }, make("span", { class: "chip-name", text: name, title: name }), chip.status, chip.bar),
      chip.retry,
      iconButton("close", `Remove ${name}`, () => this.#discard(item.key)),
    );
    this.#chips.set(item.key, chip);
    this.#list.append(chip.node);
    return chip;
  }

  #thumbnail(item, chip) {
    if (!SHOWN_AS_IMAGE.test(item.mime)) return make("span", { class: "chip-picture" }, icon(item.voice ? "mic" : iconFor(item.mime)));
    chip.preview = URL.createObjectURL(item.blob);
    const image = make("img", { class: "chip-picture", alt: "", src: chip.preview, width: 44, height: 44 });
    image.addEventListener("load", () => Object.assign(chip, { width: image.naturalWidth, height: image.naturalHeight }));
    image.addEventListener("error", () => {
      chip.preview = null;
      image.replaceWith(make("span", { class: "chip-picture" }, icon("image")));
    });
    return image;
  }

  #discard(key) {
    this.#uploads.remove(key);
    byId("text").focus();
  }

  #remove(key) {
    const chip = this.#chips.get(key);
    if (!chip) return;
    this.#chips.delete(key);
    if (chip.preview) URL.revokeObjectURL(chip.preview);
    chip.node.remove();
    this.#settle();
  }

  #settle() {
    show(this.#list, this.#chips.size > 0);
    this.#onchange();
  }
}

function statusOf(item, percent) {
  if (item.state === "failed") return item.error;
  if (item.state === "done") return format.size(item.size);
  if (item.state === "retrying") return "Waiting to continue…";
  return `${percent} % of ${format.size(item.size)}`;
}

export function iconFor(mime) {
  if (mime.startsWith("audio/")) return "music";
  if (mime.startsWith("video/")) return "video";
  return mime.startsWith("image/") ? "image" : "file";
}

export const isPicture = (mime) => SHOWN_AS_IMAGE.test(mime);
