import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followChanges, liveness, oldSince, onChange, onReturn } from "./changes";
import { resumeSession } from "./session";
import { now, startClock } from "./time";

/** A stream of the browser whose server is the test. */
class Stream extends EventTarget {
  static readonly CLOSED = 2;
  static opened: Stream[] = [];
  readyState = 1;
  onmessage: ((message: MessageEvent) => void) | null = null;
  onerror: (() => void) | null = null;

  constructor(readonly address: string) {
    super();
    Stream.opened.push(this);
  }

  /** The connection breaks, and the browser tries again by itself. */
  breaks(): void {
    this.readyState = 0;
    this.onerror?.();
  }

  refuses(): void {
    this.readyState = Stream.CLOSED;
    this.onerror?.();
  }

  close(): void {
    this.readyState = Stream.CLOSED;
  }

  says(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

let end: () => void;
let stopClock: () => void;
let roles: string[];

beforeEach(async () => {
  vi.useFakeTimers();
  Stream.opened = [];
  vi.stubGlobal("EventSource", Stream);
  roles = ["operator"];
  const target = new EventTarget();
  vi.stubGlobal("addEventListener", target.addEventListener.bind(target));
  vi.stubGlobal("removeEventListener", target.removeEventListener.bind(target));
  vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
  vi.stubGlobal("fetch", async () => Response.json({ client: "desk", roles, expiresAt: "2100-01-01T00:00:00Z" }));
  await resumeSession();
  end = followChanges();
  stopClock = startClock();
});

afterEach(async () => {
  vi.stubGlobal("fetch", async () => new Response(null, { status: 401 }));
  await resumeSession();
  end();
  stopClock();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const live = (): Stream => {
  const stream = Stream.opened.at(-1)!;
  stream.says("open", { position: 41 });
  return stream;
};

test("a stream with a beat every 2 seconds stays live, and the clock runs", async () => {
  const stream = live();
  const begun = now.value;
  for (let beats = 0; beats < 20; beats++) {
    await vi.advanceTimersByTimeAsync(2000);
    stream.says("beat", { position: 41 });
  }
  expect([liveness.value, oldSince.value]).toEqual(["live", null]);
  expect(now.value - begun).toBe(40_000);
  expect(Stream.opened).toHaveLength(1);
});

test("a frozen server is lost within 5 seconds, the clock stands still, and the stream is opened anew where it was", async () => {
  const dead = live();
  const heard = Date.now();
  await vi.advanceTimersByTimeAsync(5000);
  expect([liveness.value, oldSince.value, now.value]).toEqual(["lost", heard, heard]);
  expect(dead.readyState).toBe(Stream.CLOSED);
  await vi.advanceTimersByTimeAsync(1000);
  expect(Stream.opened.map((each) => each.address)).toEqual(["/api/changes/stream", "/api/changes/stream?after=41"]);
  dead.says("beat", { position: 41 });
  expect([liveness.value, now.value]).toEqual(["lost", heard]);
  live();
  expect([liveness.value, oldSince.value]).toEqual(["live", null]);
  expect(now.value).toBe(Date.now());
});

test("a server that was killed is lost within 5 seconds, however often the browser tries again", async () => {
  const stream = live();
  for (let tries = 0; tries < 5; tries++) {
    stream.breaks();
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(liveness.value).toBe("lost");
});

test("it stays lost while it is tried again, and after its return everything is read again once", async () => {
  live();
  const told: string[] = [];
  const ends = [onReturn(() => told.push("return")), onChange({ aggregates: ["job"] }, (change) => told.push(`change ${change?.id}`))];
  await vi.advanceTimersByTimeAsync(60_000);
  expect([liveness.value, told]).toEqual(["lost", []]);
  live();
  Stream.opened.at(-1)!.says("beat", { position: 41 });
  expect(told).toEqual(["return"]);
  ends.forEach((stop) => stop());
});

test("a stream that is never opened, and one that is refused, are lost too", async () => {
  await vi.advanceTimersByTimeAsync(5000);
  expect(liveness.value).toBe("lost");
  await vi.advanceTimersByTimeAsync(1000);
  live();
  Stream.opened.at(-1)!.refuses();
  expect(liveness.value).toBe("lost");
});

test.each(["away", "full"])("with the message %s what is shown is old", async (name) => {
  Stream.opened.at(-1)!.says("open", { position: 41 });
  const heard = Date.now();
  Stream.opened.at(-1)!.says(name, {});
  expect([liveness.value, oldSince.value]).toEqual([name, heard]);
});

test.each(["renew", "behind"])("the message %s opens the next stream at once, and is no loss", async (name) => {
  live().says(name, { position: 50 });
  expect([liveness.value, Stream.opened.at(-1)!.address]).toEqual(["live", "/api/changes/stream?after=50"]);
});

test("a page that was hidden while the connection was lost knows it when it is seen again", async () => {
  live();
  await vi.advanceTimersByTimeAsync(5000);
  for (const hidden of [true, false]) {
    Object.assign(document, { hidden });
    document.dispatchEvent(new Event("visibilitychange"));
    expect(liveness.value).toBe(hidden ? "paused" : "lost");
  }
});

test("a role that may not read the stream opens none, and nothing is said to be lost", async () => {
  roles = ["keys"];
  await resumeSession();
  Object.assign(document, { hidden: true });
  document.dispatchEvent(new Event("visibilitychange"));
  Stream.opened = [];
  Object.assign(document, { hidden: false });
  document.dispatchEvent(new Event("visibilitychange"));
  await vi.advanceTimersByTimeAsync(60_000);
  expect([liveness.value, oldSince.value, Stream.opened]).toEqual(["barred", null, []]);
});
