// Makes and finds elements; text only ever enters the page as text.
import { icon } from "./icons.js";

export const byId = (id) => document.getElementById(id);

// Attributes whose value is false, null or undefined are left out; `on…` ones are listeners.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null && child !== false));
  return element;
}

export const button = (label, attributes, ...children) =>
  make("button", { type: "button", "aria-label": label, ...attributes }, ...children);

export const iconButton = (name, label, onclick, attributes = {}) =>
  button(label, { class: "icon-button", onclick, ...attributes }, icon(name));

// Text for screen readers only.
export const spoken = (text) => make("span", { class: "spoken", text });

export function fillIcons(root) {
  for (const place of root.querySelectorAll("[data-icon]")) place.prepend(icon(place.dataset.icon));
}

export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

// Focus that was on a removed button moves to the start of the dialog; focus elsewhere stays.
export function stay(dialog, beginning) {
  if (dialog.open && !dialog.contains(document.activeElement)) beginning.focus();
}

// Changing a live region to the same text would announce it again in some screen readers.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
