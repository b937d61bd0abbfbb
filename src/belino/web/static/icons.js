// The few icons of the page, drawn as SVG nodes.
const NAMESPACE = "http://www.w3.org/2000/svg";

const PATHS = {
  attach: "M20 11.5l-8.2 8.2a5 5 0 0 1-7-7l8.6-8.7a3.3 3.3 0 0 1 4.7 4.7l-8.6 8.6a1.7 1.7 0 0 1-2.4-2.3l7.8-7.8",
  close: "M6 6l12 12M18 6L6 18",
  down: "M12 5v14M6 13l6 6 6-6",
  download: "M12 4v11m-5-4.5 5 5 5-5M5 20h14",
  file: "M7 3h7l5 5v12a1 1 0 0 1-1 1H7a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM14 3v5h5",
  image: "M5 4h14a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM4 16l4.5-4.5L13 16l3-3 4 4M15.5 9a.5.5 0 1 0 .01 0",
  left: "M15 5l-7 7 7 7",
  menu: "M4 7h16M4 12h16M4 17h10",
  mic: "M12 3a3 3 0 0 1 3 3v6a3 3 0 0 1-6 0V6a3 3 0 0 1 3-3zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3M9 21h6",
  music: "M9 18V6l10-2v12M9 18a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0zM19 16a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0z",
  outbox: "M4 13v5a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-5M12 15V4M7.5 8.5 12 4l4.5 4.5",
  person: "M12 11.5a3.75 3.75 0 1 0 0-7.5 3.75 3.75 0 0 0 0 7.5zM4.5 20a7.5 7.5 0 0 1 15 0",
  plus: "M12 5v14M5 12h14",
  pulse: "M3 12h4l2.5-6 5 12 2.5-6h4",
  retry: "M4 12a8 8 0 1 0 2.6-5.9M4 4v4.5h4.5",
  right: "M9 5l7 7-7 7",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 7h8a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V8a1 1 0 0 1 1-1z",
  video: "M4 6h11a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM16 10.5l5-3v9l-5-3",
};

export function icon(name) {
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(NAMESPACE, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
