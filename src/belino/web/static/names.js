// Names a media item and its capability, and sums up a message, for people and for requests.

export const nameOf = ({ kind, file_name: name }) => (kind === "voice" ? "Voice message" : name || kind.replace(/^./, (first) => first.toUpperCase()));

export function capabilityOf({ mime, kind }) {
  if (kind === "voice") return "audio";
  return /^(audio|image|video)\//.exec(mime)?.[1] ?? "document";
}

// A message in short: its text, else what is said in its voice messages, else its media.
export function inShort({ text, media, readings = [] }) {
  const heard = readings.filter(({ kind, attachment_index: at }) => kind === "audio.transcription" && media[at]?.kind === "voice");
  return text || heard.map((reading) => reading.text).join(" ") || media.map((item) => item.file_name || item.kind).join(", ");
}
