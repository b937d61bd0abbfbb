// Marks on the button that opens the sidebar, shown while the sidebar itself is hidden.
import { byId } from "./dom.js";

const notes = new Map();

export function mark(about, note) {
  if (note) notes.set(about, note);
  else notes.delete(about);
  const door = byId("open-sidebar");
  door.classList.toggle("marked", notes.size > 0);
  door.setAttribute("aria-label", ["Conversations", ...notes.values()].join(", "));
}
