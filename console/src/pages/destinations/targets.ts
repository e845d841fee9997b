/** The kinds of targets, and the fields of their configuration. */

export interface Member {
  name: string;
  label: string;
  secret?: boolean;
  required?: boolean;
  hint?: string;
  options?: readonly (readonly [value: string, word: string])[];
}

export interface Target {
  number: number;
  word: string;
  members: readonly Member[];
  /** The fields of a publication besides its title and description. */
  publication?: readonly Member[];
  /** The kind of content that it accepts; both by default. */
  takes?: "films" | "streams";
}

const secret = (name: string, label: string, required = false): Member => ({ name, label, secret: true, required });
const text = (name: string, label: string, required = true, hint = ""): Member => ({ name, label, required, hint });

const YOUTUBE: readonly Member[] = [
  { name: "yt_privacyStatus", label: "Who may see it", options: [["", "Public"], ["unlisted", "Unlisted"], ["private", "Private"]] },
  text("yt_categoryId", "Category", false, "The number of a category of YouTube. Empty: 22."),
  { name: "yt_madeForKids", label: "Made for kids", options: [["", "No"], ["true", "Yes"]] },
];
const CUSTOM: readonly Member[] = [text("cstm_streamUrl", "URL of the stream", false, "Empty: the URL of the destination."), secret("cstm_streamName", "Key of the stream")];

export const TARGETS: readonly Target[] = [
  { number: 5, takes: "films", word: "S3", members: [text("endpoint", "Endpoint", true, "An http or https URL."), text("bucket", "Bucket"), text("prefix", "Prefix", false), text("accessKeyId", "Access key id"), secret("secretAccessKey", "Secret access key", true)] },
  { number: 6, takes: "films", word: "SFTP", members: [text("host", "Host"), text("port", "Port", false), text("path", "Path"), text("username", "User name"), secret("password", "Password", true), text("hostKey", "Host key", false, "The public key of the server.")] },
  { number: 7, takes: "films", word: "HTTP", members: [text("url", "URL", true, "{contentId} becomes the content id."), text("method", "Method", false, "PUT or POST.")] },
  { number: 8, takes: "films", word: "Folder", members: [text("path", "Path", true, "Below the folder that the operator has configured.")] },
  { number: 2, publication: YOUTUBE, word: "YouTube", members: [text("yt_clientId", "Client id"), secret("yt_clientSecret", "Client secret"), secret("yt_refreshToken", "Refresh token")] },
  { number: 0, word: "Facebook", members: [text("fb_resourceId", "Id of the page"), secret("fb_accessToken", "Access token of the page")] },
  { number: 4, takes: "streams", publication: CUSTOM, word: "Stream (RTMP, SRT)", members: [text("cstm_streamUrl", "URL of the stream", true, "rtmp, rtmps or srt."), secret("cstm_streamName", "Key of the stream")] },
  { number: 1, word: "Twitter", members: [] },
  { number: 3, word: "MPX", members: [] },
];

export const targetOf = (number: number): Target => TARGETS.find((each) => each.number === number) ?? { number, word: String(number), members: [] };

export type Configuration = Record<string, unknown>;

/** Parses a configuration. A text without an object is an empty configuration. */
export function configurationOf(json: string): Configuration {
  try {
    const found: unknown = JSON.parse(json);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Configuration) : {};
  } catch {
    return {};
  }
}

/** Returns the configuration to send: `before` with the typed values. An empty secret is null, which keeps the stored one. */
export function written(before: Configuration, typed: Readonly<Record<string, string>>, target: Target): Configuration {
  const made: Configuration = { ...before };
  for (const { name, secret: isSecret } of target.members) {
    const value = (typed[name] ?? "").trim();
    if (isSecret) made[name] = value || null;
    else if (value === "") delete made[name];
    else made[name] = name === "port" && /^\d+$/.test(value) ? Number(value) : value;
  }
  return made;
}

/** Returns `publicationJson` with the typed values that are not empty. Throws a sentence if `other` holds no JSON object. */
export function publicationJson(typed: Readonly<Record<string, string>>, target: Target, callbacks: string, other = ""): string {
  const made: Configuration = {};
  if (other.trim()) {
    const found = configurationOf(other);
    if (Object.keys(found).length === 0) throw new Error("Other properties must be a JSON object, such as {\"name\": \"value\"}.");
    Object.assign(made, found);
  }
  for (const { name, options } of [{ name: "title" }, { name: "description" }, ...(target.publication ?? [])] as readonly Pick<Member, "name" | "options">[]) {
    const value = (typed[name] ?? "").trim();
    if (value) made[name] = options && value === "true" ? true : value;
  }
  const urls = callbacks.split("\n").map((each) => each.trim()).filter(Boolean);
  if (urls.length > 0) made["callbackUrls"] = urls;
  return JSON.stringify(made);
}
