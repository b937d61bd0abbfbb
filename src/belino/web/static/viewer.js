// Shows the pictures of a message one by one in a dialog, controlled by arrows, Escape and a click beside it.
import { byId, show } from "./dom.js";
import * as format from "./format.js";
import { capabilityOf } from "./names.js";

export class Viewer {
  #dialog = byId("viewer");
  #image = byId("viewer-image");
  #pictures = [];
  #at = 0;
  #readings;

  constructor(readings) {
    this.#readings = readings;
    byId("viewer-close").addEventListener("click", () => this.#dialog.close());
    byId("viewer-previous").addEventListener("click", () => this.#step(-1));
    byId("viewer-next").addEventListener("click", () => this.#step(1));
    byId("viewer-stage").addEventListener("click", ({ target, currentTarget }) => target === currentTarget && this.#dialog.close());
    this.#dialog.addEventListener("keydown", ({ key }) => {
      if (key === "ArrowLeft") this.#step(-1);
      if (key === "ArrowRight") this.#step(1);
    });
    this.#dialog.addEventListener("close", () => this.#image.removeAttribute("src"));
  }

  open(pictures, at) {
    this.#pictures = pictures;
    this.#at = at;
    this.#draw();
    this.#dialog.showModal();
    byId("viewer-close").focus();
  }

  #step(by) {
    const next = this.#at + by;
    if (next < 0 || next >= this.#pictures.length) return;
    this.#at = next;
    this.#draw();
  }

  #draw() {
    const picture = this.#pictures[this.#at];
    const name = picture.file_name || "Picture";
    const many = this.#pictures.length > 1;
    this.#image.src = picture.url;
    this.#image.alt = picture.alt || picture.caption || name;
    for (const side of ["width", "height"]) {
      if (picture[side]) this.#image.setAttribute(side, picture[side]);
      else this.#image.removeAttribute(side);
    }
    byId("viewer-name").textContent = name;
    const dimensions = picture.width && picture.height ? `${picture.width} × ${picture.height}` : "";
    const place = many ? `${this.#at + 1} of ${this.#pictures.length}` : "";
    byId("viewer-count").textContent = [place, dimensions, format.size(picture.size)].filter(Boolean).join(" · ");
    byId("viewer-download").href = picture.original ?? picture.url;
    byId("viewer-download").download = name;
    // A poster or a page of something else is not read as a picture.
    const read = picture.ref && !picture.local && capabilityOf(picture) === "image";
    byId("viewer-readings").replaceChildren(...(read ? [this.#readings.panel(picture).node] : []));
    this.#arrow("viewer-previous", many, this.#at === 0);
    this.#arrow("viewer-next", many, this.#at === this.#pictures.length - 1);
  }

  // aria-disabled instead of disabled: a disabled button would drop the focus out of the dialog.
  #arrow(id, many, atEnd) {
    show(byId(id), many);
    byId(id).setAttribute("aria-disabled", String(atEnd));
  }
}
