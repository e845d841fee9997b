import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followChanges, liveness } from "./changes";
import { resumeSession } from "./session";

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

  close(): void {
    this.readyState = Stream.CLOSED;
  }

  says(name: string, data: object): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

let end: () => void;

beforeEach(async () => {
  vi.useFakeTimers();
  Stream.opened = [];
  vi.stubGlobal("EventSource", Stream);
  vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
  vi.stubGlobal("fetch", async () => Response.json({ client: "desk", roles: ["operator"], expiresAt: "2100-01-01T00:00:00Z" }));
  await resumeSession();
  end = followChanges();
});

afterEach(async () => {
  vi.stubGlobal("fetch", async () => new Response(null, { status: 401 }));
  await resumeSession();
  end();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("a stream with a beat every 15 seconds stays live", async () => {
  const [stream] = Stream.opened;
  stream!.says("open", { position: 41 });
  for (let beats = 0; beats < 20; beats++) {
    await vi.advanceTimersByTimeAsync(15_000);
    stream!.says("beat", { position: 41 });
  }
  expect(liveness.value).toBe("live");
  expect(Stream.opened).toHaveLength(1);
});

test("a stream from which nothing comes is lost, and opened anew where it was", async () => {
  const [dead] = Stream.opened;
  dead!.says("open", { position: 41 });
  await vi.advanceTimersByTimeAsync(39_000);
  expect(liveness.value).toBe("live");
  await vi.advanceTimersByTimeAsync(1000);
  expect(liveness.value).toBe("lost");
  expect(dead!.readyState).toBe(Stream.CLOSED);
  await vi.advanceTimersByTimeAsync(1000);
  expect(Stream.opened.map((each) => each.address)).toEqual(["/api/changes/stream", "/api/changes/stream?after=41"]);
  dead!.says("beat", { position: 41 });
  expect(liveness.value).toBe("connecting");
  Stream.opened[1]!.says("open", { position: 41 });
  expect(liveness.value).toBe("live");
});

test("a stream that is never opened is lost too", async () => {
  await vi.advanceTimersByTimeAsync(40_000);
  expect(liveness.value).toBe("lost");
});
