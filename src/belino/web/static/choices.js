// The choices that a message offers: buttons until one is chosen, then its label.
import { make, spoken } from "./dom.js";

const MARK = "✓";

export function choices(message, does, place) {
  const offered = message.choices;
  if (!offered || message.deleted) return null;
  if (offered.chosen != null) return made(offered.chosen);
  const open = place.platform === "web" && new Date(offered.expires) > new Date();
  return open ? buttons(message, does) : closed(offered, place);
}

// The gateway adds the choice to the question's text, as on other platforms; here it is drawn on its own, as it was written.
export function withoutChoice({ text, choices: offered }) {
  const shown = offered?.chosen == null ? "" : `\n\n${MARK} ${offered.chosen}`;
  return shown && text.endsWith(shown) ? text.slice(0, -shown.length) : text;
}

const made = (label) => make("p", { class: "chosen" }, make("span", { "aria-hidden": "true", text: MARK }), spoken("Chosen: "), make("bdi", { text: label }));

const closed = ({ buttons: all }, { platform }) => make("div", { class: "choices" },
  ...all.map(({ label }) => make("button", { type: "button", class: "button choice", disabled: true, dir: "auto", text: label })),
  make("p", { class: "choices-said quiet", text: platform === "web" ? "This question is no longer open." : `It is answered on ${platform}.` }));

// A press is sent once; after a lost connection it is sent again under the same id, so that it counts once.
function buttons(message, does) {
  const said = make("p", { class: "choices-said", role: "status" });
  const ids = new Map();
  const press = async (event, key) => {
    if (group.getAttribute("aria-busy")) return;
    group.setAttribute("aria-busy", "true");
    event.currentTarget.classList.add("pressed");
    said.textContent = "Sending…";
    try {
      const { reason, message: stored } = await does.press(message, key, ids);
      said.textContent = stored ? "Sent" : `${reason[0].toUpperCase()}${reason.slice(1)}.`;
    } catch (error) {
      said.textContent = `Not sent: ${error.message}`;
    }
    for (const one of group.querySelectorAll(".pressed")) one.classList.remove("pressed");
    group.removeAttribute("aria-busy");
  };
  const one = ({ key, label, style }) => make("button", { type: "button", class: `button choice ${style}`, "data-key": key, dir: "auto", text: label, onclick: (event) => press(event, key) });
  const group = make("div", { class: "choices", role: "group", "aria-label": "Choices" }, ...message.choices.buttons.map(one), said);
  return group;
}
