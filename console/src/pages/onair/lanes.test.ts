import { describe, expect, test } from "vitest";
import type { MediaEvent } from "../../kernel/api";
import { lanes, ticks } from "./lanes";

const NOON = Date.parse("2031-05-01T12:00:00Z");
const minutes = (count: number): string => new Date(NOON + count * 60_000).toISOString();
let made = 0;

function event(from: number | null, to: number | null, more: Partial<MediaEvent> = {}): MediaEvent {
  const times = { scheduledStart: from === null ? null : minutes(from), scheduledEnd: to === null ? null : minutes(to) };
  const rest = { state: 0, roomId: "r", room: "Studio", channelId: null, channel: null, actualLiveStart: null, actualLiveEnd: null };
  return { id: `e${++made}`, title: "", ...rest, ...times, ...more } as MediaEvent;
}

const placed = (events: MediaEvent[]) => lanes(events, { by: "room", at: NOON, shortest: 0 }).flatMap((each) => each.placed);

describe("lanes", () => {
  test.each([
    [event(5, 60), "next"],
    [event(-5, 60), "late"],
    [event(-5, null), "late"],
    [event(-60, -5), "missed"],
    [event(-60, 5, { state: 2, actualLiveStart: minutes(-50) }), "onair"],
    [event(-60, -5, { state: 1 }), "over"],
    [event(-60, 5, { state: 4, actualLiveStart: minutes(-60), actualLiveEnd: minutes(-20) }), "past"],
  ])("an Event stands as its state and its times say", (one, standing) => {
    expect(placed([one]).map((each) => each.standing)).toEqual([standing]);
  });

  test("only the first planned Event of a lane is the next", () => {
    expect(placed([event(90, 120), event(5, 60)]).map((each) => each.standing)).toEqual(["next", "planned"]);
  });

  test("Events at the same time have rows of their own and know each other; one that ended is no conflict", () => {
    const [long, short, after, ended] = [event(0, 60), event(30, 90), event(60, 90), event(0, 60, { state: 4, actualLiveEnd: minutes(60), actualLiveStart: minutes(0) })];
    const found = new Map(placed([long, short, after, ended]).map((each) => [each.event.id, each]));
    expect(found.get(long.id)!.overlaps).toEqual([short]);
    expect(found.get(short.id)!.overlaps).toEqual([long, after]);
    expect(found.get(ended.id)!.overlaps).toEqual([]);
    expect(new Set([long, short, ended].map((each) => found.get(each.id)!.row)).size).toBe(3);
  });

  test("without a room there is no conflict, and that lane is the last", () => {
    const found = lanes([event(0, 60, { roomId: null, room: null }), event(0, 60, { roomId: null, room: null }), event(0, 60)], { by: "room", at: NOON, shortest: 0 });
    expect(found.map((each) => each.title)).toEqual(["Studio", "No room"]);
    expect(found[1]!.placed.flatMap((each) => each.overlaps)).toEqual([]);
  });

  test("an Event without a time has no place; one that is live has that of its start", () => {
    expect(placed([event(null, null)])).toEqual([]);
    const [live] = placed([event(null, null, { state: 2, actualLiveStart: minutes(-90) })]);
    expect([live!.start, live!.end]).toEqual([NOON - 90 * 60_000, NOON]);
  });

  test("500 Events of one lane are placed in a moment", () => {
    const many = Array.from({ length: 500 }, (_, index) => event(index, index + 20));
    expect(Math.max(...placed(many).map((each) => each.row))).toBe(19);
  });
});

test("lines stand at full steps of the day", () => {
  const found = ticks(NOON + 1, NOON + 3_600_000, 1_800_000);
  expect(found.map((at) => new Date(at).getUTCMinutes() % 30)).toEqual([0, 0]);
});
