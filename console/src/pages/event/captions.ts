/** Captions of a film: their words and their query. */

import { api } from "../../kernel/api";

export const CAPTION_KINDS: Readonly<Record<string, { word: string; hint: string }>> = {
  subtitles: { word: "Subtitles", hint: "Spoken dialogue" },
  captions: { word: "Captions", hint: "Dialogue and sounds, for deaf viewers" },
  descriptions: { word: "Descriptions", hint: "Descriptions of the picture, for blind viewers" },
  forced: { word: "Forced", hint: "Foreign passages only, shown by default" },
};

/** The captions of an Event, the oldest first. */
export function captionsQuery(eventId: string, signal: AbortSignal) {
  return api.GET("/api/asset/", { params: { query: { eventId, types: "CAPTION" as never } }, signal });
}

/** A language in English words: `pt-BR` is Portuguese (Brazil). A text that is not a tag is unchanged. */
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
