// Formats sizes, times and days for people.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const precise = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const longDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const shortDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export function size(bytes) {
  if (bytes == null) return "";
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

export const duration = (seconds) => (seconds == null ? "" : clockwise(Math.round(seconds)));

// A place in a sound: the second that has begun.
export const stamp = (seconds) => clockwise(Math.floor(seconds));

function clockwise(whole) {
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

export const time = (iso) => clock.format(new Date(iso));
export const fullTime = (iso) => exact.format(new Date(iso));
export const preciseTime = (iso) => precise.format(new Date(iso));
export const dayKey = (iso) => new Date(iso).toDateString();

const daysAgo = (date) => {
  const midnight = (day) => new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
  return Math.round((midnight(new Date()) - midnight(date)) / 86_400_000);
};

export function day(iso) {
  const date = new Date(iso);
  const ago = daysAgo(date);
  if (ago === 0) return "Today";
  if (ago === 1) return "Yesterday";
  return (ago < 180 ? weekday : longDay).format(date);
}

// For a list: the time for today, the day for earlier.
export function when(iso) {
  const date = new Date(iso);
  return daysAgo(date) === 0 ? clock.format(date) : shortDay.format(date);
}

export const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

// Strangers choose names. Direction controls are removed: with one, "gnp.exe" reads as "exe.png".
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export const name = (text) => text.replace(TURNING, "");

const plain = new Intl.NumberFormat();
const dollars = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

export const number = (value) => plain.format(value);
export const money = (usd) => dollars.format(usd);
