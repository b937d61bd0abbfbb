// Stores what a reload must not lose: files being uploaded (IndexedDB), drafts and unsent messages (localStorage).

const DATABASE = "belino";
const FILES = "files";

let opening = null;

function open() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(FILES, { keyPath: "key" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

async function run(mode, act) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(FILES, mode);
    const request = act(transaction.objectStore(FILES));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

export const keepFile = (record) => run("readwrite", (files) => files.put(record));
export const dropFile = (key) => run("readwrite", (files) => files.delete(key));
export const keptFiles = () => run("readonly", (files) => files.getAll());

// Storage may be full or forbidden; the page then works without it.
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(`belino:${name}`);
    else localStorage.setItem(`belino:${name}`, JSON.stringify(value));
  } catch {
    return false;
  }
  return true;
}

export function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`belino:${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keptUnder(prefix) {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(`belino:${prefix}`));
  return names.sort().map((name) => kept(name.slice("belino:".length), null)).filter(Boolean);
}

export async function forgetEverything() {
  for (const name of Object.keys(localStorage)) if (name.startsWith("belino:")) localStorage.removeItem(name);
  await run("readwrite", (files) => files.clear());
}
