/** The words for faults of the player, by the codes of Shaka Player. */

interface Fault {
  code?: number;
  category?: number;
  data?: readonly unknown[];
}

const CODES: Readonly<Record<number, string>> = {
  1002: "The server of the stream does not answer.",
  1003: "The server of the stream takes too long.",
  4032: "This browser plays none of the codecs of the stream.",
  6000: "This browser knows no DRM system for which the Event has a licence server.",
  6001: "This browser has none of the DRM systems that the stream needs.",
  6007: "The licence server issued no licence.",
  6008: "The licence server issued a licence that this browser does not accept.",
  6012: "The stream is encrypted, and the Event has no licence server for this browser.",
  6014: "The licence is for another key, or has expired.",
};

export function faultWord(thrown: unknown): string {
  const fault = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Fault;
  if (fault.code === undefined) return thrown instanceof Error ? thrown.message : "The player gave no reason.";
  if (fault.code === 1001) {
    const status = Number(fault.data?.[1]);
    return status === 404 ? "The stream does not exist (status 404): nothing was sent to it yet, or it was removed." : `The server of the stream answered with status ${status}.`;
  }
  return CODES[fault.code] ?? (fault.category === 6 ? `The DRM of the browser refused it (code ${fault.code}).` : `The player reports the code ${fault.code}.`);
}
