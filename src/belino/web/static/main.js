// Starts the page: signs in, then connects socket, outbox, uploads, room and panels.
import { call, onSignedOut } from "./api.js";
import { Composer } from "./composer.js";
import { showConnection } from "./connection.js";
import { Conversations, addressOf, fromAddress } from "./conversations.js";
import { byId, fillIcons, show } from "./dom.js";
import { Draft } from "./draft.js";
import { Following } from "./following.js";
import { Groups } from "./groups.js";
import { Health } from "./health.js";
import { forgetEverything } from "./keep.js";
import { showWelcome, signIn, takeToken } from "./login.js";
import { Outbox, newId } from "./outbox.js";
import { Pairings } from "./pairings.js";
import { Parcels } from "./parcels.js";
import { Reader } from "./reader.js";
import { Readings } from "./readings.js";
import { Room } from "./room.js";
import { Savings } from "./savings.js";
import { Socket } from "./socket.js";
import { Turns } from "./turns.js";
import { Uploads } from "./uploads.js";
import { Viewer } from "./viewer.js";
import { Why } from "./why.js";

const FIRST_TRY_AGAIN = 2000;
const QUESTION = "What is this?";

async function start(token) {
  let me;
  try {
    me = await signIn(token);
  } catch {
    showWelcome("It may be starting; this page tries again by itself.", "belino cannot be reached");
    setTimeout(() => start(token), FIRST_TRY_AGAIN);
    return;
  } finally {
    byId("opening").hidden = true;
  }
  if (!me) return;
  byId("welcome").hidden = true;
  await enter(me);
}

async function enter(me) {
  const socket = new Socket();
  const outbox = new Outbox(socket);
  const uploads = new Uploads(me.limits.file_bytes);
  const turns = new Turns((conversation) => socket.request("chat.abort", { conversation }), () => conversations.draw());
  const conversations = new Conversations((conversation) => turns.isBusy(conversation));
  const composer = new Composer(uploads, me, (message) => outbox.add(message));
  const draft = new Draft();
  const parcels = new Parcels();
  const savings = new Savings();
  const bring = async ({ ref }) => {
    room.brought(await call("POST", "/api/media/fetch", { ref }));
    savings.changed();
  };
  // Refused, nothing was stored: the next press is another message. A lost connection leaves that open.
  const press = async ({ conversation }, key, ids) => {
    const id = ids.get(key) ?? newId();
    ids.set(key, id);
    const answer = await socket.request("chat.send", { id, conversation, press: key, language: navigator.language });
    if (answer.message) room.take(answer.message);
    else ids.delete(key);
    return answer;
  };
  const readings = new Readings(me.reads);
  const following = new Following(socket, (conversation) => turns.isBusy(conversation));
  const room = new Room({ me, outbox, turns, draft, parcels, following, does: actions({ outbox, composer, parcels, bring, readings, press }) });
  const groups = new Groups();
  const pairings = new Pairings(groups);
  const health = new Health();

  byId("version").textContent = `belino ${me.version}`;
  onSignedOut(() => {
    socket.stop();
    composer.leave();
    showWelcome("Your session has ended. What you wrote is kept in this browser.");
  });
  byId("skip").addEventListener("click", () => byId("text").focus());
  byId("sign-out").addEventListener("click", () => signOut(socket, composer));
  showConnection(socket);
  listen({ socket, room, turns, draft, conversations, following, uploads, savings, pairings, groups, health, parcels, readings });

  const openFromAddress = () => open({ room, composer, conversations });
  window.addEventListener("hashchange", openFromAddress);
  show(byId("app"), true);
  await conversations.load();
  await uploads.restore(outbox.uploadIds()).catch(() => {});
  await openFromAddress();
  socket.start();
}

const actions = ({ outbox, composer, parcels, bring, readings, press }) => {
  const viewer = new Viewer(readings);
  const reader = new Reader(readings);
  const why = new Why();
  return {
    readings,
    why: (message) => why.open(message),
    open: (pictures, at) => viewer.open(pictures, at),
    read: (item) => reader.open(item),
    fetch: bring,
    press,
    retry: (id) => outbox.retry(id),
    answerAgain: ({ conversation, id }) => call("POST", "/api/retry", { message: `${conversation}/${id}` }),
    sendParcel: (key) => parcels.send(key),
    dropParcel: (key) => parcels.drop(key),
    discard: (id) => outbox.remove(id),
    ask: ({ conversation, id }) => outbox.add({ conversation, text: QUESTION, reply_to: id }),
    edit: (id) => {
      composer.restore(outbox.get(id)?.text ?? "");
      outbox.remove(id);
    },
  };
};

function listen({ socket, room, turns, draft, conversations, following, uploads, savings, pairings, groups, health, parcels, readings }) {
  const quietly = (promise) => promise.catch(() => {});
  const look = () => [pairings, groups, health].forEach((part) => quietly(part.load()));
  socket.addEventListener("hello", () => {
    turns.forget();
    readings.forget();
    quietly(room.connected());
    quietly(conversations.load());
    uploads.hurry();
    savings.changed();
    look();
    quietly(parcels.load());
  });
  socket.addEventListener("owner", look);
  socket.addEventListener("lost", () => {
    turns.forget();
    readings.forget();
    quietly(room.catchUp());
    quietly(conversations.load());
    look();
    quietly(parcels.load());
  });
  socket.addEventListener("overview", ({ detail }) => {
    // For followed conversations, events have already reported this, and may have reported more.
    const others = detail.conversations.filter(({ conversation }) => !following.has(conversation));
    for (const { conversation, turns: states } of others) for (const one of states) turns.take({ conversation, ...one });
    quietly(conversations.glanced(others));
    if (others.some(({ has_media }) => has_media)) savings.changed();
    for (const parcel of detail.parcels) quietly(pairings.took(parcel));
    parcels.glanced(detail.parcels);
  });
  socket.addEventListener("parcel", ({ detail }) => {
    quietly(pairings.took(detail));
    parcels.took(detail);
  });
  socket.addEventListener("message", ({ detail: { message } }) => {
    room.take(message);
    draft.arrived(message);
    quietly(conversations.took(message));
    savings.changed();
  });
  socket.addEventListener("turn", ({ detail }) => {
    draft.take(detail);
    if (detail.state === "writing") return;
    turns.take(detail);
    if ((detail.state === "failed" || detail.state === "aborted") && detail.conversation === room.conversation) quietly(room.catchUp());
  });
  socket.addEventListener("reading", ({ detail }) => readings.took(detail));
  // A socket that is refused repeatedly may mean that the session is over; a request shows it.
  socket.addEventListener("state", ({ detail }) => detail.state === "waiting" && quietly(call("GET", "/api/me")));
}

async function open({ room, composer, conversations }) {
  const wanted = fromAddress() ?? room.conversation;
  const known = conversations.get(wanted) ?? conversations.get("web:default:main") ?? conversations.get(conversations.newest);
  if (!known) return;
  const { conversation, platform, visitor } = known;
  if (fromAddress() !== conversation) history.replaceState(null, "", addressOf(conversation));
  if (conversation === room.conversation) return;
  conversations.open(conversation);
  const web = platform === "web";
  const hint = web ? "Write a message" : visitor ? "Ask the agent in this group" : `This conversation is answered on ${platform}`;
  composer.open(conversation, { writable: web || Boolean(visitor), takesFiles: web, hint });
  composer.focus();
  await room.open(known).catch(() => {});
}

async function signOut(socket, composer) {
  socket.stop();
  composer.discard();
  await call("POST", "/api/logout").catch(() => {});
  await forgetEverything().catch(() => {});
  showWelcome("You are signed out.", "See you soon");
}

// A new link opened in this tab only changes the fragment; the page is not reloaded.
async function signInAgain() {
  const token = takeToken();
  if (!token || !byId("app").hidden) return;
  if (await signIn(token).catch(() => null)) location.reload();
}

fillIcons(document);
window.addEventListener("hashchange", signInAgain);
start(takeToken());
