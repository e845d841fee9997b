import { expect, test } from "vitest";
import { fieldWord, summary, typeWord, whoWord, type Entry } from "../audit/words";
import { parts, rowsOf, versionAt } from "./differences";

const entry = (version: number, recordedAt: string, data: Record<string, unknown> = {}): Entry => ({
  position: version,
  aggregate: "event",
  id: "a",
  version,
  type: "event.state_changed",
  recordedAt,
  actor: "desk",
  actorKind: "client",
  endUser: "jane",
  transactionId: "t",
  causationId: null,
  data,
  hash: "",
});

test("fields, types, people and states are said in words", () => {
  expect(fieldWord("scheduledStart")).toBe("Scheduled start");
  expect(fieldWord("video.hls_url")).toBe("Video › HLS URL");
  expect(fieldWord("eventTypeId")).toBe("Event type");
  expect(typeWord("event.state_changed")).toBe("State changed");
  expect(whoWord({ actor: "desk", endUser: "jane" })).toBe("jane (through desk)");
  expect(whoWord({ actor: "shell:root", actorKind: "shell" })).toBe("root in a shell");
  expect(whoWord({ actor: "system", actorKind: "product" })).toBe("the product itself");
  expect(whoWord({ actor: "system", actorKind: "client" })).toBe("the client system");
  expect(whoWord({ actor: "desk", actorKind: "person" })).toBe("desk in the console");
  expect(summary(entry(1, "", { timestamp: "x", state: 2, previous: 0 }))).toBe("Planned → Live");
  expect(summary(entry(1, "", { timestamp: "x", redacted: true }))).toBe("erased");
});

test("a name and its id are one row, and a state and its text", () => {
  const before = { roomId: "1", room: "One", state: 0, stateString: "PRE_LIVE", dateModified: "x", video: { url: "a" } };
  const after = { roomId: "2", room: "Two", state: 2, stateString: "LIVE", dateModified: "y", video: { url: "b" } };
  const rows = rowsOf(before, after, []);
  expect(rows.map((each) => each.field)).toEqual(["roomId", "state", "video.url"]);
  expect(rows[0]!.names).toEqual(["One", "Two"]);
  expect(rowsOf({ room: "One" }, { room: "Two" }, []).map((each) => each.field)).toEqual(["room"]);
});

test("only the words that differ are marked", () => {
  expect(parts("Cup final today", "Cup semi-final today")).toEqual(["Cup ", "final", " today"]);
  expect(parts("same", "same")).toEqual(["same", "", ""]);
  expect(parts("a a", "a a a").join("")).toBe("a a");
});

test("the version of a time is the newest before it", () => {
  const entries = [entry(1, "2031-01-01T00:00:00.000Z"), entry(2, "2031-01-01T00:00:01.000Z")];
  expect(versionAt(entries, Date.parse("2030-12-31T23:59:59Z"))).toBe(0);
  expect(versionAt(entries, Date.parse("2031-01-01T00:00:00.500Z"))).toBe(1);
  expect(versionAt(entries, Date.parse("2032-01-01T00:00:00Z"))).toBe(2);
});
