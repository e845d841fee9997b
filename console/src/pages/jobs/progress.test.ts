import { expect, test } from "vitest";
import { Progresses, size, type TaskSeen } from "./progress";

const task = (changed: Partial<TaskSeen>): TaskSeen => ({
  job_id: 7, task_id: 1, name: "fetch", state: "running", attempts: 1, fraction: 0, message: "", ...changed,
});

test("bytes, rate and the time that is left follow from what was seen", () => {
  const progresses = new Progresses();
  const other = task({ task_id: 2, name: "store", state: "waiting" });
  progresses.seen([task({ fraction: 0.1, message: "1000000 of 10000000 bytes" }), other], 0);
  const seen = progresses.seen([task({ fraction: 0.3, message: "3000000 of 10000000 bytes" }), other], 2000);
  expect(seen.get(7)).toEqual({ fraction: 0.15, text: "fetch · 3.0 MB of 10.0 MB · 1.0 MB/s · 7 s left" });
});

test("another attempt begins again, and nothing is said of a rate too early", () => {
  const progresses = new Progresses();
  progresses.seen([task({ fraction: 0.5 })], 0);
  expect(progresses.seen([task({ attempts: 2, fraction: 0.6, message: "0.6" })], 5000).get(7)?.text).toBe("fetch · 0.6");
  expect(progresses.seen([task({ state: "completed" }), task({ task_id: 2, state: "ready" })], 6000).get(7)).toEqual({
    fraction: 0.5, text: "waits for a worker",
  });
});

test("sizes are short", () => {
  expect([0, 999, 1500, 250_000_000, 3e12].map(size)).toEqual(["0 B", "999 B", "1.5 kB", "250 MB", "3.0 TB"]);
});
