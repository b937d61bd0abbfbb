// Lists that are redrawn without disturbing focus, clicks or playback in them.

// Puts the nodes in order and leaves those in place untouched: a moved node loses focus and half-made clicks.
export function arrange(place, nodes) {
  const wanted = new Set(nodes);
  for (const node of [...place.childNodes]) if (!wanted.has(node)) node.remove();
  let next = place.firstChild;
  for (const node of nodes) {
    if (node === next) next = node.nextSibling;
    else place.insertBefore(node, next);
  }
}

export class Rows {
  #place;
  #keyOf;
  #draw;
  #rows = new Map();

  constructor(place, keyOf, draw) {
    this.#place = place;
    this.#keyOf = keyOf;
    this.#draw = draw;
  }

  // An unchanged row stays; a changed one keeps the focus where it was.
  fill(items) {
    const focused = document.activeElement;
    let refocus = null;
    const row = (item) => {
      const old = this.#rows.get(this.#keyOf(item));
      const fresh = this.#draw(item);
      if (old?.isEqualNode(fresh)) return old;
      if (old?.contains(focused)) refocus = pressable(fresh)[pressable(old).indexOf(focused)];
      return fresh;
    };
    this.#rows = new Map(items.map((item) => [this.#keyOf(item), row(item)]));
    arrange(this.#place, [...this.#rows.values()]);
    refocus?.focus({ preventScroll: true });
  }
}

const pressable = (node) => [...node.querySelectorAll("a, button")];
