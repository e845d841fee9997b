import { describe, expect, test } from "vitest";
import { type Change, matches } from "./changes";
import { asFailure, failureOf } from "./failure";
import { queryString } from "./queryString";
import { EVENT_STATES, jobState, stateWord } from "./states";
import { duration, relative, running } from "./time";

describe("times", () => {
  test.each([
    [0, "0 s"],
    [59_999, "59 s"],
    [60_000, "1 min"],
    [3_600_000, "1 h"],
    [5_400_000, "1 h 30 min"],
    [90_000_000, "1 d 1 h"],
    [40 * 86_400_000, "40 d"],
  ])("%i ms last %s", (milliseconds, words) => {
    expect(duration(milliseconds)).toBe(words);
    expect(duration(-milliseconds)).toBe(words);
  });

  test("what is near is now, the rest before or after", () => {
    expect(relative(1000, 0)).toBe("now");
    expect(relative(60_000, 0)).toBe("in 1 min");
    expect(relative(0, 3_600_000)).toBe("1 h ago");
  });

  test("a running time does not change its width", () => {
    expect(running(3_723_999)).toBe("1:02:03");
    expect(running(-5)).toBe("0:00:00");
  });
});

describe("failures", () => {
  test("a problem document, an error of the engine and no body at all are one type", () => {
    const problem = failureOf(400, { detail: "No.", errors: [{ field: "title", message: "is too long" }] }, "t-1");
    expect([problem.detail, problem.of("Title"), problem.transactionId]).toEqual(["No.", "is too long", "t-1"]);
    expect(failureOf(400, { error: "job.priority: 1 to 10" }).detail).toBe("job.priority: 1 to 10");
    expect(failureOf(503, "<html>").detail).toContain("not available");
    expect(failureOf(412, { detail: "The version is 3." }).wasOvertaken).toBe(true);
  });

  test("no answer has status 0", () => {
    expect(asFailure(new TypeError("fetch failed")).status).toBe(0);
  });

  test("errors of fields that are no errors are left out", () => {
    expect(failureOf(400, { errors: [null, 7, { field: "a" }] }).fields).toEqual([]);
  });
});

describe("queries", () => {
  test("lists are separated by commas, values with commas are repeated, nothing is left out by accident", () => {
    expect(queryString({ eventState: [1, 2], category: ["a,b", "c"], search: "x&y", page: 0, empty: "", none: undefined })).toBe(
      "eventState=1%2C2&category=a%2Cb&category=c&search=x%26y&page=0",
    );
  });
});

test("changes match when all that is asked for holds", () => {
  const change: Change = { position: 1, aggregate: "event", id: "a", version: 1, type: "event.state_changed", recordedAt: "" };
  expect(matches({}, change)).toBe(true);
  expect(matches({ aggregates: ["event"], ids: ["b"] }, change)).toBe(false);
  expect(matches({ aggregates: ["job"] }, change)).toBe(false);
});

test("states have words, also those of a newer server", () => {
  expect(Object.keys(EVENT_STATES)).toHaveLength(26);
  expect(stateWord(EVENT_STATES, 99).word).toBe("99");
  expect(jobState({ queue_state: "completed", failed: true }).word).toBe("Failed");
});
