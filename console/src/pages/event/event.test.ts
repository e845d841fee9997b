import { describe, expect, test } from "vitest";
import type { MediaEvent, Schemas } from "../../kernel/api";
import { nextStates } from "../../kernel/states";
import { differences } from "./differences";
import { Failure } from "../../kernel/failure";
import { startOfCopy } from "./clone";
import { atFields, bodyOf, draftOf, EMPTY, patchOf, problemsOf, tagsOf } from "./draft";
import { faultWord } from "./player/faults";
import { licenceServers, mediaPath, sources } from "./player/sources";
import { secondsOf, timeText } from "./Playhead";
import { signalOf } from "./signal";

const event = (more: Partial<MediaEvent> = {}): MediaEvent => ({ contentId: "c", state: 0, mp4State: 0, title: "Final", vodDrm: false, scheduledStart: null, ...more }) as MediaEvent;

describe("times of the playhead", () => {
  test.each([
    [0, "00:00:00.000"],
    [59.9996, "00:01:00.000"],
    [3723.25, "01:02:03.250"],
  ])("%d s is %s, and back", (seconds, text) => {
    expect(timeText(seconds)).toBe(text);
    expect(secondsOf(text)).toBeCloseTo(seconds, 2);
  });

  test.each(["", "1:2:3", "2031-05-01T20:00:00Z", "00:60:00", "-00:00:01"])("%s is no time from the start", (text) => {
    expect(secondsOf(text)).toBeNull();
  });
});

describe("what can be played", () => {
  const stream = (url: string, streamProtocol: number, streamSourceString = "CDN_PRIMARY_INDEX_1") => ({ url, streamProtocol, streamSourceString });

  test("each address once, none of kinds that browsers do not play, packages after streams", () => {
    const video = { currentStateUrls: [stream("a", 0), stream("a", 0, "ORIGIN_PRIMARY_INDEX_0"), stream("b", 3), stream("c", 2)] } as Schemas["Video"];
    const found = sources(event(), video, [{ name: "clear/master.m3u8" }, { name: "c.mp4" }, { name: "clear/manifest.mpd" }, { name: "x/manifest.mpd" }]);
    expect(found.map((each) => each.url)).toEqual(["a", "c", "/media/c/clear/manifest.mpd", "/media/c/clear/master.m3u8", "/media/c/c.mp4"]);
    expect(found[0]!.word).toBe("HLS, CDN primary, encoder 2");
  });

  test("the MP4 of a protected Event is not offered: nobody gets it", () => {
    expect(sources(event({ vodDrm: true }), null, [{ name: "c.mp4" }, { name: "cenc/manifest.mpd" }]).map((each) => each.url)).toEqual(["/media/c/cenc/manifest.mpd"]);
  });

  test("names of files are encoded, folders are not", () => {
    expect(mediaPath("c/assets/50% & #1?.jpg")).toBe("/media/c/assets/50%25%20%26%20%231%3F.jpg");
  });

  test("licence servers come from the entries with these names; anything else is no error", () => {
    const data = [{ name: "CENC", widevine_laurl: "w", playready_laurl: "" }, { name: "FAIRPLAY", laurl: "f" }, { name: "CLEARKEY", laurl: "k" }, null, 7];
    expect(licenceServers(data)).toEqual({ "com.widevine.alpha": "w", "com.apple.fps": "f", "org.w3.clearkey": "k" });
    expect(licenceServers("nonsense")).toEqual({});
  });

  test("faults have words", () => {
    expect(faultWord({ code: 1001, data: ["url", 404] })).toContain("does not exist");
    expect(faultWord({ code: 6001, category: 6 })).toContain("DRM");
    expect(faultWord({ code: 9999 })).toContain("9999");
    expect(faultWord(undefined)).toContain("no reason");
  });
});

test("a form sends what was changed alone, and shows a refusal of a step at its field", () => {
  const begun = draftOf(event({ dvrLength: 0, refId: "r", scheduledStart: "2031-05-01T18:00:30Z" }), ["a"]);
  expect(patchOf(begun, begun)).toEqual([]);
  const steps = patchOf(begun, { ...begun, title: "Cup", roomId: "", scheduledStart: "", tags: "a, b,,a" });
  expect(steps.map(({ path, value }) => [path, value])).toEqual([["/title", "Cup"], ["/scheduledStart", null], ["/tags", [{ name: "a" }, { name: "b" }]]]);
  const refused = atFields(new Failure(400, "No.", [{ field: "[1].value", message: "must be a time" }, { field: "body", message: "is odd" }]), steps);
  expect(refused.fields).toEqual([{ field: "scheduledStart", message: "must be a time" }, { field: "body", message: "is odd" }]);
  expect(tagsOf(" ,, ")).toEqual([]);
});

test("differences are told by the names and words of the page", () => {
  expect(differences(event(), event({ state: 2, title: "Cup final" }))).toEqual([
    { name: "State", before: "Planned", after: "Live" },
    { name: "Title", before: "Final", after: "Cup final" },
  ]);
});

test("the next states of an Event never name its own", () => {
  for (let state = 0; state < 26; state++) expect(nextStates(state).map((each) => each.state)).not.toContain(state);
});

describe("a form of an Event", () => {
  const begun = draftOf(event({ dvrLength: 0, scheduledStart: "2031-05-01T18:00:00Z", scheduledEnd: "2031-05-01T19:00:00Z" }), []);
  const wrong = (changed: Partial<typeof begun>) => problemsOf({ ...begun, ...changed }, patchOf(begun, { ...begun, ...changed })).map((each) => each.field);

  test.each([
    [{ scheduledEnd: begun.scheduledStart }, ["scheduledEnd"]],
    [{ scheduledStart: "", autoStart: true }, ["scheduledStart"]],
    [{ scheduledEnd: "", autoEnd: true }, ["scheduledEnd"]],
    [{ title: " " }, ["title"]],
    [{ dvrLength: "-1" }, ["dvrLength"]],
    [{ description: "new" }, []],
  ])("with %o is refused at %o", (changed, fields) => {
    expect(wrong(changed)).toEqual(fields);
  });

  test("whose times are stored in a wrong order already can be saved", () => {
    const old = draftOf(event({ dvrLength: 0, scheduledStart: "2031-05-01T18:00:00Z", scheduledEnd: "2031-05-01T17:00:00Z" }), []);
    const changed = { ...old, title: "Cup" };
    expect(problemsOf(changed, patchOf(old, changed))).toEqual([]);
  });

  test("of a new Event sends what was typed", () => {
    expect(bodyOf({ ...EMPTY, title: "Cup", autoEnd: true, tags: "a" })).toEqual({ title: "Cup", autoEnd: true, tags: [{ name: "a" }] });
  });
});

test.each([
  ["2031-05-01T18:00:00Z", "2031-05-02"],
  ["2020-01-01T18:00:00Z", "2031-05-01"],
])("a copy of what begins at %s is offered on a later day that is not over: %s", (scheduledStart, day) => {
  const found = startOfCopy(event({ scheduledStart }), Date.parse("2031-05-01T12:00:00Z"));
  expect(found.slice(0, 10)).toBe(day);
});

test.each([
  [{ channelId: null }, {}, "No channel", "bad"],
  [{ channelId: "c" }, undefined, "Signal unknown", "neutral"],
  [{ channelId: "c" }, {}, "No publishing point", "warn"],
])("of an Event on the air with %o and the points %o is said: %s", (more, points, word, tone) => {
  expect(signalOf(event({ id: "e", ...more }), points)).toEqual({ word, tone });
});
