// Reads a document or a listing page by page in a dialog; its content enters the page only as text.
import { byId, make, say, show } from "./dom.js";
import * as format from "./format.js";
import { inRows, placeOf, unitOf } from "./glances.js";
import { lookAt } from "./previews.js";

export class Reader {
  #dialog = byId("reader");
  #body = byId("reader-body");
  #field = byId("reader-part");
  #item = null;
  #part = 1;
  #parts = 1;
  #asked = 0;
  #readings;

  constructor(readings) {
    this.#readings = readings;
    byId("reader-close").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("click", ({ target }) => target === this.#dialog && this.#dialog.close());
    byId("reader-previous").addEventListener("click", () => this.#turn(this.#part - 1));
    byId("reader-next").addEventListener("click", () => this.#turn(this.#part + 1));
    this.#field.addEventListener("change", () => this.#turn(Number(this.#field.value)));
    this.#dialog.addEventListener("keydown", ({ key, target }) => {
      if (target === this.#field) return;
      if (key === "ArrowLeft") this.#turn(this.#part - 1);
      if (key === "ArrowRight") this.#turn(this.#part + 1);
    });
    this.#dialog.addEventListener("close", () => {
      this.#asked += 1;
      this.#body.replaceChildren();
    });
  }

  open(item) {
    const name = item.file_name || "File";
    this.#item = item;
    this.#parts = 1;
    say(byId("reader-name"), name);
    byId("reader-download").href = item.url;
    byId("reader-download").download = name;
    show(byId("reader-pages"), false);
    this.#dialog.showModal();
    this.#body.focus();
    this.#load(1);
  }

  #turn(part) {
    if (Number.isInteger(part) && part >= 1 && part <= this.#parts && part !== this.#part) this.#load(part);
    else this.#field.value = this.#part;
  }

  async #load(part) {
    const asked = ++this.#asked;
    this.#part = part;
    this.#body.replaceChildren(make("p", { class: "quiet", text: "Reading…" }));
    this.#body.setAttribute("aria-busy", "true");
    let seen;
    try {
      seen = await lookAt(this.#item.url, { part });
    } catch (error) {
      seen = { kind: "failed", reason: error.message };
    }
    if (asked !== this.#asked) return;
    this.#body.removeAttribute("aria-busy");
    this.#body.replaceChildren(...(seen.text === undefined ? [failure(seen.reason)] : this.#drawn(seen)));
    this.#body.scrollTop = 0;
    this.#place(seen);
  }

  #drawn(seen) {
    const text = make("div", { class: inRows(seen, this.#item) ? "reader-text rows" : "reader-text", text: seen.text });
    return [
      seen.notes.length ? make("ul", { class: "reader-notes" }, ...seen.notes.map((note) => make("li", { text: note }))) : null,
      seen.title && seen.kind === "text" ? make("h3", { dir: "auto", text: seen.title }) : null,
      seen.picture ? scan(seen) : seen.text ? text : make("p", { class: "quiet", text: "There is no text here." }),
      seen.picture && this.#item.ref && this.#readings.readsPages ? this.#readScan(seen) : null,
      this.#more(seen, text),
    ].filter(Boolean);
  }

  // The text of a scanned page, on request.
  #readScan({ part }) {
    const place = make("div", { class: "reader-read" });
    const read = make("button", { type: "button", class: "button", text: "Read the text of this page" });
    read.addEventListener("click", async () => {
      const asked = this.#asked;
      place.replaceChildren(make("p", { class: "reading-state", role: "status" }, make("span", { class: "spinner", "aria-hidden": "true" }), "Reading the text…"));
      this.#body.focus({ preventScroll: true });
      try {
        const { text, uncertain, provider } = await this.#readings.readPage(this.#item, part);
        if (asked === this.#asked) place.replaceChildren(
          make("p", { class: "quiet", role: "status", text: `Read by ${provider}${uncertain ? ", uncertain" : ""}` }),
          make("div", { class: "reader-text", text: text || "There is no text in it." }));
      } catch (error) {
        if (asked === this.#asked) place.replaceChildren(failure(error.message), read);
      }
    });
    place.append(read);
    return place;
  }

  // A part may be as long as a book: it is loaded in pieces.
  #more({ next, part }, text) {
    if (next == null) return null;
    const more = make("button", { type: "button", class: "button", text: "Show more" });
    let from = next;
    more.addEventListener("click", async () => {
      const asked = this.#asked;
      try {
        const seen = await lookAt(this.#item.url, { part, offset: from });
        if (asked !== this.#asked) return;
        text.append(seen.text);
        from = seen.next;
        this.#body.focus({ preventScroll: true });
        show(more, from != null);
      } catch (error) {
        if (asked === this.#asked) more.replaceWith(failure(error.message));
      }
    });
    return more;
  }

  #place(seen) {
    this.#parts = seen.parts ?? this.#parts;
    const whole = seen.kind === "listing" ? format.size(this.#item.size) : "";
    say(byId("reader-place"), seen.text === undefined ? "" : [placeOf(seen), whole].filter(Boolean).join(" · "));
    show(byId("reader-pages"), this.#parts > 1);
    say(byId("reader-unit"), unitOf(seen));
    say(byId("reader-parts"), `of ${format.number(this.#parts)}`);
    this.#field.max = this.#parts;
    this.#field.value = this.#part;
    // aria-disabled instead of disabled: a disabled button would drop the focus out of the dialog.
    byId("reader-previous").setAttribute("aria-disabled", String(this.#part === 1));
    byId("reader-next").setAttribute("aria-disabled", String(this.#part === this.#parts));
  }
}

const failure = (reason) => make("p", { class: "error", role: "alert", text: `belino cannot show it: ${reason}` });

function scan({ picture, part }) {
  const image = make("img", { class: "reader-scan", src: picture, alt: `Page ${part}, a picture without text` });
  image.addEventListener("error", () => image.replaceWith(failure("there is no picture of this page")));
  return image;
}
