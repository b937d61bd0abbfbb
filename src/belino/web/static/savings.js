// The line that says what was not spent: media that came and that nobody has fetched.
import { call } from "./api.js";
import { byId, say, show } from "./dom.js";

// A busy group changes the numbers many times a second; nobody reads that fast. Counting a large store takes longer,
// and is asked for less often.
const EVERY = 1000;
const SHARE = 20;

export class Savings {
  #waiting = false;
  #pause = EVERY;

  // Something happened: the numbers are asked for soon, and once for everything that happens until then.
  changed() {
    if (this.#waiting) return;
    this.#waiting = true;
    setTimeout(async () => {
      this.#waiting = false;
      const begun = performance.now();
      const saved = await call("GET", "/api/savings").catch(() => null);
      this.#pause = Math.max(EVERY, SHARE * (performance.now() - begun));
      if (!saved) return;
      say(byId("savings"), saved.says);
      show(byId("savings"), saved.media > 0);
    }, this.#pause);
  }
}
