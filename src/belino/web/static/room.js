// The open conversation: loads its history, catches up after a gap, and joins stored and unsent messages.
import { call, query } from "./api.js";
import { byId, say, show } from "./dom.js";
import { asMessage } from "./parcels.js";
import { Scroll } from "./scroll.js";
import { Timeline } from "./timeline.js";

const PAGE = 50;
// Loading from a little before the last message also brings changes to the newest ones.
const OVERLAP = 20;
const ROUNDS = 5;

export class Room {
  #conversation = null;
  #timeline;
  #scroll;
  #outbox;
  #parcels;
  #underWay = new Set();
  #turns;
  #draft;
  #following;
  #agent = "";
  #me;
  #loaded = false;
  #loadingOlder = false;
  #heard = 0;

  constructor({ me, outbox, turns, draft, parcels, following, does }) {
    this.#me = me;
    this.#outbox = outbox;
    this.#parcels = parcels;
    this.#turns = turns;
    this.#draft = draft;
    this.#following = following;
    this.#timeline = new Timeline(does);
    this.#scroll = new Scroll(() => this.#older());
    outbox.addEventListener("changed", ({ detail }) => this.#unsent(detail));
    outbox.addEventListener("removed", ({ detail }) => this.#timeline.removeUnsent(detail.id));
    outbox.addEventListener("sent", ({ detail }) => this.take(detail));
    parcels.addEventListener("changed", () => this.#loaded && this.#answers());
  }

  get conversation() {
    return this.#conversation;
  }

  async open({ conversation, name, platform, visitor, agent = this.#me.agent.name }) {
    this.#conversation = conversation;
    this.#agent = agent;
    this.#loaded = false;
    this.#timeline.clear({ platform, visitor });
    this.#underWay.clear();
    show(byId("older"), false);
    say(byId("room-name"), name || conversation);
    document.title = `${name || conversation} · belino`;
    say(byId("room-agent"), `with ${agent}`);
    this.#turns.open(conversation, agent);
    this.#draft.open(conversation, agent);
    this.#parcels.load().catch(() => {});
    await this.connected();
  }

  // Subscribed before history is read, so that nothing is lost in between.
  async connected() {
    if (this.#conversation) await this.#following.add(this.#conversation);
    await this.catchUp();
  }

  take(message) {
    if (message.conversation !== this.#conversation) return;
    this.#heard += 1;
    this.#scroll.arrived(this.#timeline.put([message]));
  }

  // A file's bytes are now held.
  brought(item) {
    const message = this.#timeline.stored.find(({ media }) => media.some(({ ref }) => ref === item.ref));
    if (message) this.#timeline.put([{ ...message, media: message.media.map((one) => (one.ref === item.ref ? item : one)) }]);
  }

  // History read while a message arrives may be older than that message: then it is read again.
  async catchUp() {
    const conversation = this.#conversation;
    for (let round = 0; conversation && conversation === this.#conversation && round < ROUNDS; round += 1) {
      const heard = this.#heard;
      await (this.#loaded ? this.#newer(conversation) : this.#first(conversation));
      if (heard === this.#heard) return;
    }
  }

  async #newer(conversation) {
    let after = Math.max(0, (this.#timeline.lastSeq ?? 0) - OVERLAP);
    for (let more = true; more; ) {
      const page = await history({ conversation, after, limit: 200 });
      if (conversation !== this.#conversation) return;
      this.#scroll.arrived(this.#timeline.put(page.messages));
      const last = page.messages.at(-1)?.seq ?? after;
      more = page.more && last > after;
      after = last;
    }
    this.#turns.learn(conversation, this.#timeline.stored);
  }

  async #first(conversation) {
    byId("log").setAttribute("aria-busy", "true");
    const page = await history({ conversation, limit: PAGE });
    if (conversation !== this.#conversation) return;
    this.#loaded = true;
    this.#timeline.put(page.messages);
    for (const entry of this.#outbox.of(conversation)) this.#unsent(entry);
    this.#answers();
    this.#turns.learn(conversation, this.#timeline.stored);
    this.#scroll.toEnd();
    show(byId("older"), page.more);
    byId("log").removeAttribute("aria-busy");
  }

  async #older() {
    if (this.#loadingOlder || byId("older").hidden) return;
    this.#loadingOlder = true;
    const conversation = this.#conversation;
    byId("log").setAttribute("aria-busy", "true");
    try {
      const page = await history({ conversation, before: this.#timeline.firstSeq, limit: PAGE });
      if (conversation !== this.#conversation) return;
      this.#scroll.holding(() => {
        this.#timeline.put(page.messages);
        show(byId("older"), page.more);
      });
    } catch {
      // The button stays; the next scroll or click retries.
    } finally {
      byId("log").removeAttribute("aria-busy");
      this.#loadingOlder = false;
    }
  }

  // The agent's undelivered messages.
  #answers() {
    const parcels = this.#parcels.of(this.#conversation);
    for (const key of this.#underWay) if (!parcels.some((parcel) => parcel.key === key)) this.#timeline.removeUnsent(key);
    for (const parcel of parcels) this.#timeline.putUnsent(asMessage(parcel, this.#agent));
    this.#underWay = new Set(parcels.map(({ key }) => key));
  }

  // An unsent message looks like a stored one, with a state.
  #unsent(entry) {
    if (entry.conversation !== this.#conversation) return;
    this.#timeline.putUnsent({
      id: entry.id, conversation: entry.conversation, author: { id: "me", name: this.#me.name, is_agent: false },
      sent: entry.made, text: entry.text, state: entry.state, reason: entry.reason, reply_to: entry.reply_to,
      media: entry.attachments.map(localMedia),
    });
    if (entry.state === "sending") this.#scroll.toEnd();
  }
}

const localMedia = ({ file_name, mime, size, voice, duration, preview, width, height }) => ({
  kind: voice ? "voice" : mime.split("/")[0], mime, file_name, size, duration, width, height, url: preview ?? null, local: true,
});

const history = (values) => call("GET", `/api/messages?${query(values)}`);
