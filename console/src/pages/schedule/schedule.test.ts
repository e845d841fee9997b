import { describe, expect, it } from "vitest";
import type { MediaEvent } from "../../kernel/api";
import { changesOf, csvOf, parsed, rowsOf, type Names } from "./csv";
import { moved, placed, rangeOf, shifted } from "./timeline";

const NAMES: Names = { room: new Map([["Hall A", ["1"]], ["Twin", ["2", "3"]]]), channel: new Map(), type: new Map(), category: new Map() };
const event = (over: Partial<MediaEvent>): MediaEvent => ({ id: "e", refId: "r", title: "T", scheduledStart: null, scheduledEnd: null, ...over }) as MediaEvent;

describe("CSV", () => {
  it("reads back what it wrote: quotes, lines, formulas", () => {
    const title = '=SUM("a";1)\nnext, line';
    const text = csvOf([event({ refId: "a-1", title, scheduledStart: "2031-05-01T20:00:00.000Z", room: "Hall A", roomId: "1", description: null })]);
    expect(text).toContain(`"'=SUM(`);
    const [row] = rowsOf(text, NAMES);
    expect(row!.problems).toEqual([]);
    expect(row!.fields).toMatchObject({ refId: "a-1", title, scheduledStart: "2031-05-01T20:00:00.000Z", scheduledEnd: null, roomId: "1" });
    expect(changesOf(row!, event({ refId: "a-1", title, scheduledStart: "2031-05-01T20:00:00.000Z", roomId: "1", description: null }))).toEqual({});
  });
  it("says what is wrong in each row, with its line", () => {
    const rows = rowsOf("\uFEFFreference;start;end;room\r\n;x;;\na;2031-05-01 20:00;2031-05-01 19:00;Nowhere\n\na;;;Twin", NAMES);
    expect(rows.map((row) => [row.line, row.problems.length])).toEqual([[2, 2], [3, 2], [5, 2]]);
    expect(rows[1]!.problems).toEqual(["end: must be after start", "room: there is none named Nowhere"]);
  });
  it("refuses a file that it cannot read", () => {
    expect(() => rowsOf("", NAMES)).toThrow("empty");
    expect(() => rowsOf("title\nx", NAMES)).toThrow("reference");
    expect(() => rowsOf("reference,colour\nx,y", NAMES)).toThrow("colour");
    expect(() => parsed('reference\n"x')).toThrow("line 2");
  });
});

describe("time line", () => {
  const at = (hour: number): string => new Date(2031, 4, 1, hour).toISOString();
  it("puts overlapping Events in rows and names them; touching ones do not overlap", () => {
    const events = [[10, 12], [11, 13], [12, 14]].map(([from, to], index) => event({ id: String(index), scheduledStart: at(from!), scheduledEnd: at(to!) }));
    expect(placed(events, true).map((each) => [each.row, each.overlaps.map((one) => one.id).join()])).toEqual([[0, "1"], [1, "0,2"], [0, "1"]]);
    expect(placed(events, false).every((each) => each.overlaps.length === 0)).toBe(true);
  });
  it("knows weeks and moves", () => {
    expect(rangeOf("2031-05-01", "week").from).toEqual(new Date(2031, 3, 28));
    expect(moved("2031-05-01", "day", 1)).toBe("2031-05-02");
    expect(shifted({ start: 0, end: 10 }, -20, { edge: "end", step: 5 })).toEqual({ start: 0, end: 5 });
    expect(shifted({ start: 0, end: null }, 7, { edge: "both", step: 1 })).toEqual({ start: 7, end: null });
  });
});
