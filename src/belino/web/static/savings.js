// Savings: a line for everything that arrived and was never fetched, and behind it the same by channel.
import { call } from "./api.js";
import { byId, make, say, show } from "./dom.js";
import * as format from "./format.js";

// A busy group changes the numbers many times a second, faster than people read. Counting a large store takes longer,
// and is requested less often.
const EVERY = 1000;
const SHARE = 20;
const LISTED = 200;

export class Savings {
  #waiting = false;
  #pause = EVERY;

  constructor() {
    const dialog = byId("saved");
    byId("open-savings").addEventListener("click", () => this.#open());
    byId("saved-close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  }

  // Something changed: the numbers are requested soon, once for all changes until then.
  changed() {
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(async () => {
      this.#waiting = false;
      const begun = performance.now();
      const saved = await call("GET", "/api/savings").catch(() => null);
      this.#pause = Math.max(EVERY, SHARE * (performance.now() - begun));
      if (saved) this.#draw(saved);
    }, this.#pause);
  }

  #open() {
    say(byId("saved-error"), "");
    byId("saved").showModal();
    byId("saved-title").focus();
    call("GET", "/api/savings").then((saved) => this.#draw(saved), (error) => say(byId("saved-error"), error.message));
  }

  #draw(saved) {
    say(byId("savings"), saved.says);
    show(byId("open-savings"), saved.media > 0);
    if (!byId("saved").open) return;
    say(byId("saved-says"), saved.says);
    const { channels } = saved;
    byId("saved-channels").replaceChildren(...channels.slice(0, LISTED).map(channelItem));
    say(byId("saved-more"), channels.length > LISTED ? `and ${format.count(channels.length - LISTED, "more channel", "more channels")}` : "");
  }
}

const channelItem = ({ channel, name, says }) => make("li", {},
  make("strong", { dir: "auto", text: name || channel }),
  name ? make("p", { class: "quiet", text: channel }) : null,
  make("p", { text: says }));
