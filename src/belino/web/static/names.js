// Names a media item and its capability, for people and for requests.

export const nameOf = ({ kind, file_name: name }) => (kind === "voice" ? "Voice message" : name || kind.replace(/^./, (first) => first.toUpperCase()));

export function capabilityOf({ mime, kind }) {
  if (kind === "voice") return "audio";
  return /^(audio|image|video)\//.exec(mime)?.[1] ?? "document";
}
