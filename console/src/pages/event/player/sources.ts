/** The playable sources of an Event: the addresses of its state, and the packages in the folder of its content. */

import type { MediaEvent, Schemas } from "../../../kernel/api";

export interface Source {
  url: string;
  word: string;
  mime: string;
}

const HLS = "application/x-mpegurl";
const DASH = "application/dash+xml";
const KINDS: Readonly<Record<number, readonly [word: string, mime: string]>> = { 0: ["HLS", HLS], 2: ["DASH", DASH], 4: ["HLS, encrypted", HLS] };
const PACKAGE = /^(clear|cenc|cbcs)\/(master\.m3u8|manifest\.mpd)$/;

/** Returns each address once. Kinds that browsers do not play, such as HDS, are omitted. */
export function sources(event: MediaEvent, video: Schemas["Video"] | null, files: readonly { name: string }[]): Source[] {
  const streams = (video?.currentStateUrls ?? []).flatMap((each) => {
    const kind = KINDS[each.streamProtocol];
    return kind ? [{ url: each.url, word: `${kind[0]}, ${placeWord(each.streamSourceString)}`, mime: kind[1] }] : [];
  });
  const packages = files.flatMap(({ name }): Source[] => {
    const found = PACKAGE.exec(name);
    if (found) return [{ url: mediaPath(`${event.contentId}/${name}`), word: packageWord(found), mime: name.endsWith(".mpd") ? DASH : HLS }];
    return name === `${event.contentId}.mp4` && !event.vodDrm ? [{ url: mediaPath(`${event.contentId}/${name}`), word: "MP4 file", mime: "video/mp4" }] : [];
  });
  const order = (one: Source): number => (one.word.startsWith("DASH") ? 0 : one.word.startsWith("HLS") ? 1 : 2);
  const ordered = [...streams, ...packages.sort((one, other) => order(one) - order(other))];
  return [...new Map(ordered.map((each) => [each.url, each] as const).reverse()).values()].reverse();
}

/** The path below /media of a file of the media root. */
export function mediaPath(path: string): string {
  return `/media/${path.split("/").map(encodeURIComponent).join("/")}`;
}

function packageWord([, folder, file]: RegExpExecArray): string {
  const kind = file!.endsWith(".mpd") ? "DASH" : "HLS";
  return folder === "clear" ? `${kind}, package` : `${kind}, package with DRM (${folder})`;
}

/** `CDN_PRIMARY_INDEX_0`: `CDN primary`. */
function placeWord(source: string): string {
  const [, place = source, index = "0"] = /^(.*)_INDEX_(\d+)$/.exec(source) ?? [];
  const words = place.toLowerCase().replaceAll("_", " ").replace("cdn", "CDN");
  return index === "0" ? words : `${words}, encoder ${Number(index) + 1}`;
}

/** Licence servers by key system, from the DRM data of an Event. */
export function licenceServers(drmData: unknown): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of Array.isArray(drmData) ? drmData : []) {
    const of = (member: string): string | null => (typeof entry?.[member] === "string" && entry[member] !== "" ? entry[member] : null);
    const add = (system: string, url: string | null): void => void (url && (found[system] = url));
    if (of("name") === "CENC") {
      add("com.widevine.alpha", of("widevine_laurl"));
      add("com.microsoft.playready", of("playready_laurl"));
    }
    if (of("name") === "FAIRPLAY") add("com.apple.fps", of("laurl"));
    if (of("name") === "CLEARKEY") add("org.w3.clearkey", of("laurl"));
  }
  return found;
}
