import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Run, runsGoingOn, type Step } from "./runs";
import { resumeSession } from "./session";
import { toasts } from "./toasts";

beforeEach(() => void (toasts.value = []));
afterEach(() => void vi.unstubAllGlobals());

/** Steps that end when the test says so. */
function held(count: number): { steps: Step[]; end: (index: number, thrown?: Error) => Promise<void>; begun: number[] } {
  const doors: { resolve: (said: string) => void; reject: (thrown: Error) => void }[] = [];
  const begun: number[] = [];
  const steps = Array.from({ length: count }, (_, index) => {
    const said = new Promise<string>((resolve, reject) => doors.push({ resolve, reject }));
    return { what: `Row ${index}`, act: () => (begun.push(index), said) };
  });
  const end = async (index: number, thrown?: Error): Promise<void> => {
    if (thrown) doors[index]!.reject(thrown);
    else doors[index]!.resolve("changed");
    await new Promise((then) => setTimeout(then));
  };
  return { steps, end, begun };
}

describe("a run", () => {
  test("goes on by itself, and keeps what each write said", async () => {
    const { steps, end, begun } = held(3);
    const run = new Run({ page: "/schedule" });
    const ended = run.start("Change of 3 Events", steps);
    expect(runsGoingOn.value).toContain(run);
    expect(begun).toEqual([0]);
    await end(0);
    await end(1, new Error("No."));
    expect(run.state.results).toEqual([{ what: "Row 0: changed", problem: null }, { what: "Row 1", problem: "No." }]);
    await expect(run.start("Another", [])).rejects.toThrow("still in progress");
    await end(2);
    await ended;
    expect(run.state).toMatchObject({ total: 3, running: false, stopped: false });
    expect(runsGoingOn.value).not.toContain(run);
    expect(toasts.value).toMatchObject([{ tone: "bad", text: "Change of 3 Events: 2 done, 1 failed", detail: "Row 1: No." }]);
    run.reset();
    expect(run.state.total).toBe(0);
  });

  test("stops after what is being written", async () => {
    const { steps, end, begun } = held(5);
    const run = new Run({ page: "/jobs", atOnce: 2 });
    const ended = run.start("Retry 5 jobs", steps);
    run.stop();
    await end(0);
    await end(1);
    await ended;
    expect(begun).toEqual([0, 1]);
    expect(run.state).toMatchObject({ running: false, stopped: true });
    expect(toasts.value[0]!.text).toBe("Retry 5 jobs: 2 done, 3 not tried");
  });

  test("does not go on for another user, who does not see it", async () => {
    const as = (client: string) => vi.stubGlobal("fetch", async () => Response.json({ client, roles: ["operator"], expiresAt: "2100-01-01T00:00:00Z" }));
    as("desk");
    await resumeSession();
    const { steps, end, begun } = held(2);
    const run = new Run({ page: "/schedule" });
    const ended = run.start("Change of 2 Events", steps);
    as("other");
    await resumeSession();
    await end(0);
    await ended;
    expect(begun).toEqual([0]);
    expect([run.state.total, toasts.value]).toEqual([0, []]);
    as("desk");
    await resumeSession();
    expect(run.state).toMatchObject({ total: 2, stopped: true });
  });
});
