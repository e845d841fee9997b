/** Captions of a film: their words, and how they are asked for. */

import { api } from "../../kernel/api";

export const CAPTION_KINDS: Readonly<Record<string, { word: string; hint: string }>> = {
  subtitles: { word: "Subtitles", hint: "What is spoken" },
  captions: { word: "Captions", hint: "Also sounds, for those who cannot hear" },
  descriptions: { word: "Descriptions", hint: "What is seen, for those who cannot see" },
  forced: { word: "Forced", hint: "Only what is foreign in the film; shown unasked" },
};

/** The captions of an Event, the oldest first. */
export function captionsQuery(eventId: string, signal: AbortSignal) {
  return api.GET("/api/asset/", { params: { query: { eventId, types: "CAPTION" as never } }, signal });
}

/** A language in English words: `pt-BR` is Portuguese (Brazil). What is no tag stays as it is. */
export function languageWord(tag: string | null | undefined): string {
  if (!tag) return "";
  if (tag === "und") return "Not known";
  try {
    return new Intl.DisplayNames(["en"], { type: "language", languageDisplay: "standard", fallback: "code" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** The names of caption files without their endings, each once and in order: `…/captions/deutsch.de.captions.vtt` and `.m3u8` are one. */
export function captionStems(paths: readonly string[]): string {
  const stems = paths.filter((path) => /(captions|subtitles)\//.test(path)).map((path) => path.slice(path.lastIndexOf("/") + 1).replace(/\.(vtt|m3u8)$/, ""));
  return [...new Set(stems)].sort().join("\n");
}
