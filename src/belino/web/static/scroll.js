// Keeps the newest message in view unless the reader scrolled up, and keeps the position when older ones are added.
import { byId, say, show } from "./dom.js";
import * as format from "./format.js";

const NEAR = 80;

export class Scroll {
  #log = byId("log");
  #jump = byId("jump");
  #sticks = true;
  #settled = { top: 0, bottom: 0 };
  #unseen = 0;

  constructor(loadOlder) {
    this.#log.addEventListener("scroll", () => this.#moved(), { passive: true });
    this.#jump.addEventListener("click", () => this.toEnd());
    byId("load-older").addEventListener("click", loadOlder);
    const observer = new ResizeObserver(() => this.#sticks && this.#settle());
    for (const part of [this.#log, byId("messages"), byId("draft"), byId("turn")]) observer.observe(part);
    new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && loadOlder(), {
      root: this.#log,
      rootMargin: "600px 0px 0px 0px",
    }).observe(byId("older"));
  }

  toEnd() {
    this.#sticks = true;
    this.#settled = { top: 0, bottom: 0 };
    this.#settle();
    this.#count(0);
  }

  // New messages below the view are counted, not scrolled to.
  arrived(fresh) {
    if (this.#sticks) this.#settle();
    if (!this.#sticks && fresh) this.#count(this.#unseen + fresh);
  }

  // Runs `change`, which adds content above, without moving the view.
  holding(change) {
    const fromEnd = this.#log.scrollHeight - this.#log.scrollTop;
    change();
    this.#log.scrollTop = this.#log.scrollHeight - fromEnd;
  }

  // The scroll event comes a frame late: a reader who has just scrolled up is detected by position, and stays there.
  #settle() {
    if (this.#wentUp(NEAR) && this.#distance() > NEAR) {
      this.#sticks = false;
      return;
    }
    this.#log.scrollTop = this.#log.scrollHeight;
    this.#settled = this.#view();
  }

  #view() {
    const { scrollTop: top, clientHeight } = this.#log;
    return { top, bottom: top + clientHeight };
  }

  // When the composer grows the bottom of the view moves up, when it shrinks the top does; only a reader moves both.
  #wentUp(far) {
    const { top, bottom } = this.#view();
    return top < this.#settled.top - far && bottom < this.#settled.bottom - far;
  }

  #distance() {
    return this.#log.scrollHeight - this.#view().bottom;
  }

  // A reader who is far from the end only because of new content, without scrolling, still follows the end.
  #moved() {
    const distance = this.#distance();
    this.#sticks = distance < NEAR || (this.#sticks && !this.#wentUp(1));
    if (distance < NEAR) this.#settled = this.#view();
    if (this.#sticks) this.#count(0);
    show(this.#jump, !this.#sticks && (this.#unseen > 0 || distance > 2 * this.#log.clientHeight));
  }

  #count(unseen) {
    this.#unseen = unseen;
    say(byId("jump-text"), unseen ? format.count(unseen, "new message", "new messages") : "Newest messages");
    show(this.#jump, !this.#sticks && unseen > 0);
  }
}
