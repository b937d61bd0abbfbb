// Lets files be dropped anywhere on the page, with a zone that shows where they would go.
import { byId, show } from "./dom.js";

const hasFiles = (event) => Array.from(event.dataTransfer?.types ?? []).includes("Files");

export function acceptDrops(mayDrop, take) {
  const zone = byId("drop");
  // Every element under the pointer sends its own enter and leave; only their balance shows that the page was left.
  let depth = 0;

  const end = () => {
    depth = 0;
    show(zone, false);
  };
  window.addEventListener("dragenter", (event) => {
    if (!hasFiles(event) || !mayDrop()) return;
    event.preventDefault();
    depth += 1;
    show(zone, true);
  });
  window.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = mayDrop() ? "copy" : "none";
  });
  window.addEventListener("dragleave", (event) => {
    if (!hasFiles(event)) return;
    depth -= 1;
    if (depth <= 0) end();
  });
  window.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    end();
    if (mayDrop()) take(filesOf(event.dataTransfer));
  });
}

// A dropped folder looks like a file that cannot be read, so folders are left out.
export function filesOf(transfer) {
  const items = Array.from(transfer.items ?? []).filter((item) => item.kind === "file");
  if (!items.length) return Array.from(transfer.files);
  return items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile()).filter(Boolean);
}
