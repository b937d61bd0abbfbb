// The composer: draft, files, paste, and when sending is possible.
import { Attachments, PER_MESSAGE } from "./attachments.js";
import { Commands } from "./commands.js";
import { byId, say, show } from "./dom.js";
import { acceptDrops, filesOf } from "./drop.js";
import { keep, kept } from "./keep.js";
import { Voice } from "./voice.js";

const TALLEST = 240;

export class Composer {
  #form = byId("composer");
  #text = byId("text");
  #send = byId("send");
  #note = byId("composer-note");
  #attachments;
  #commands;
  #voice;
  #conversation = null;
  #readOnly = false;
  #takesFiles = false;
  #waiting = false;
  #failedBefore = 0;
  #onsend;

  constructor(uploads, { limits, commands }, onsend) {
    this.#onsend = onsend;
    this.#commands = new Commands(commands, () => this.#edited());
    this.#attachments = new Attachments(uploads, () => this.#settle());
    this.#voice = new Voice(limits.file_bytes, (recorded) => this.#recorded(recorded));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#text.addEventListener("input", () => this.#edited());
    this.#text.addEventListener("keydown", (event) => this.#key(event));
    this.#text.addEventListener("paste", (event) => this.#paste(event));
    byId("attach").addEventListener("click", () => byId("files").click());
    byId("files").addEventListener("change", ({ target }) => {
      this.#attach(target.files);
      target.value = "";
    });
    acceptDrops(() => this.#takesFiles && !document.querySelector("dialog[open]"), (files) => this.#attach(files));
  }

  // `place`: whether writing and files are allowed here, and the placeholder text.
  open(conversation, { writable, takesFiles, hint }) {
    this.#conversation = conversation;
    this.#readOnly = !writable;
    this.#takesFiles = takesFiles;
    this.#waiting = false;
    this.#text.value = kept(`draft:${conversation}`, "");
    this.#text.disabled = this.#readOnly;
    show(byId("attach"), takesFiles || !writable);
    byId("attach").disabled = !takesFiles;
    this.#text.placeholder = hint;
    this.#attachments.open(conversation);
    this.#voice.open(conversation, takesFiles);
    this.#grow();
  }

  // A failed message returns for editing.
  restore(text) {
    this.#text.value = [text, this.#text.value].filter(Boolean).join("\n");
    this.#edited();
    this.#text.focus();
  }

  focus() {
    // On a touch screen the keyboard would cover the conversation that was just opened.
    if (!this.#readOnly && matchMedia("(hover: hover)").matches) this.#text.focus();
  }

  // The page is left: what is being recorded stays in this browser.
  leave() {
    this.#voice.keep();
  }

  discard() {
    this.#voice.cancel();
  }

  // A recording leaves with what is written and attached, like any file; a kept one stays beside it.
  #recorded({ conversation, file, seconds, send }) {
    this.#attachments.addVoice(conversation, file, seconds);
    // While its last piece was written, another conversation may have been opened.
    if (!send || conversation !== this.#conversation) return;
    this.#text.focus();
    this.#waiting = true;
    this.#failedBefore = this.#attachments.failed;
    this.#settle();
  }

  #attach(files) {
    this.#attachments.add(files);
    this.#text.focus();
  }

  #key(event) {
    if (this.#commands.key(event)) return;
    // Safari's key code 229 means that this Enter only ends a composed word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  #paste(event) {
    const files = filesOf(event.clipboardData);
    if (!files.length || !this.#takesFiles) return;
    event.preventDefault();
    this.#attach(files);
  }

  #submit() {
    if (!this.#sendable()) return;
    this.#attachments.refresh();
    if (this.#attachments.busy) {
      this.#waiting = !this.#waiting;
      this.#failedBefore = this.#attachments.failed;
      this.#settle();
      return;
    }
    this.#waiting = false;
    this.#voice.hush();
    this.#onsend({ conversation: this.#conversation, text: this.#text.value.trim(), attachments: this.#attachments.take() });
    this.#text.value = "";
    this.#edited();
  }

  #sendable() {
    const { busy, ready } = this.#attachments;
    return !this.#readOnly && (this.#text.value.trim() !== "" || busy || ready.length > 0);
  }

  // A message sent during an upload leaves when the upload is done; a failed upload returns it to the composer.
  #settle() {
    if (!this.#attachments) return;
    const { busy, failed, left } = this.#attachments;
    if (this.#waiting && failed > this.#failedBefore) this.#waiting = false;
    this.#send.disabled = !this.#sendable();
    this.#send.classList.toggle("waiting", this.#waiting);
    this.#send.setAttribute("aria-label", this.#waiting ? "Do not send yet" : "Send");
    const much = left ? `A message takes ${PER_MESSAGE} files: ${left} will stay for the next one` : "";
    say(this.#note, this.#waiting ? "Sends when the upload is done" : much);
    if (this.#waiting && !busy) this.#submit();
  }

  #edited() {
    keep(`draft:${this.#conversation}`, this.#text.value || null);
    this.#commands.edited();
    this.#grow();
    this.#settle();
  }

  #grow() {
    this.#text.style.setProperty("height", "auto");
    this.#text.style.setProperty("height", `${Math.min(this.#text.scrollHeight, TALLEST)}px`);
  }
}
