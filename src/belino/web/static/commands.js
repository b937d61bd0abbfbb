// The list of commands, shown above the composer while one is being typed.
import { byId, make, show } from "./dom.js";

export class Commands {
  #text = byId("text");
  #list = byId("commands");
  #known;
  #chosen = -1;
  #closed = false;
  #onpick;

  // `known`: name, argument and description of each command.
  constructor(known, onpick) {
    this.#known = known;
    this.#onpick = onpick;
    this.#text.addEventListener("blur", () => this.#close());
  }

  // The text changed: show the commands that begin with it.
  edited() {
    this.#closed = false;
    this.#draw();
  }

  // Whether the key moved in the list or took a command from it, and means nothing else.
  key(event) {
    const options = [...this.#list.children];
    if (this.#list.hidden || !options.length || event.isComposing) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.#choose(event.key === "ArrowDown" ? 1 : -1, options);
    else if (event.key === "Escape") this.#close();
    else if (event.key === "Tab" && !event.shiftKey) options[Math.max(this.#chosen, 0)].click();
    else if (event.key === "Enter" && !event.shiftKey && this.#chosen >= 0) options[this.#chosen].click();
    else return false;
    event.preventDefault();
    return true;
  }

  #draw() {
    const typed = /^\/[a-z]*$/i.test(this.#text.value) ? this.#text.value.slice(1).toLowerCase() : null;
    const fitting = typed == null || this.#closed ? [] : this.#known.filter(({ name }) => name.startsWith(typed));
    this.#list.replaceChildren(...fitting.map((command, number) => this.#option(command, number)));
    this.#chosen = -1;
    this.#text.removeAttribute("aria-activedescendant");
    show(this.#list, fitting.length > 0);
  }

  #option({ name, argument, says }, number) {
    return make(
      "li",
      {
        id: `command-${number}`,
        role: "option",
        "aria-selected": "false",
        onpointerdown: (event) => event.preventDefault(), // the composer keeps the focus
        onclick: () => this.#pick(name, argument),
      },
      make("span", { class: "command-name", text: `/${name}${argument && ` ${argument}`}` }),
      make("span", { class: "quiet", text: says }),
    );
  }

  #pick(name, argument) {
    this.#text.value = argument ? `/${name} ` : `/${name}`;
    this.#onpick();
    this.#close();
    this.#text.focus();
  }

  #choose(step, options) {
    this.#chosen = (this.#chosen + step + options.length + (this.#chosen < 0 && step < 0 ? 1 : 0)) % options.length;
    for (const [number, option] of options.entries()) option.setAttribute("aria-selected", String(number === this.#chosen));
    this.#text.setAttribute("aria-activedescendant", options[this.#chosen].id);
    options[this.#chosen].scrollIntoView({ block: "nearest" });
  }

  #close() {
    this.#closed = true;
    this.#draw();
  }
}
