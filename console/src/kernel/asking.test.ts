import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Asking } from "./asking";
import { writeBegun, writeEnded } from "./writes";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server that takes `milliseconds` for an answer, which is the number of the question. */
function slow(milliseconds: number) {
  const seen = { asked: 0, answers: [] as number[], failures: [] as string[] };
  const ask = (end: AbortSignal): Promise<number> => {
    const number = ++seen.asked;
    return new Promise((answer, refuse) => {
      const timer = setTimeout(() => answer(number), milliseconds);
      end.addEventListener("abort", () => (clearTimeout(timer), refuse(new DOMException("given up", "AbortError"))));
    });
  };
  const told = { begun: () => undefined, answered: (answer: number) => void seen.answers.push(answer), failed: (thrown: unknown) => void seen.failures.push((thrown as Error).message) };
  return { seen, asking: new Asking(ask, told) };
}

describe("a server that is slower than the poll", () => {
  test("is shown", async () => {
    const { seen, asking } = slow(2500);
    asking.now();
    const timer = setInterval(() => asking.poll(), 1000);
    await vi.advanceTimersByTimeAsync(6500);
    clearInterval(timer);
    expect(seen).toEqual({ asked: 3, answers: [1, 2], failures: [] });
  });

  test("is said to be silent after a minute, and asked anew", async () => {
    const { seen, asking } = slow(90_000);
    asking.now();
    const timer = setInterval(() => asking.poll(), 1000);
    await vi.advanceTimersByTimeAsync(61_000);
    clearInterval(timer);
    expect(seen).toEqual({ asked: 2, answers: [], failures: ["The server does not answer."] });
  });
});

describe("changes that come faster than the answer", () => {
  test("do not keep it from being shown, and are asked for after it", async () => {
    const { seen, asking } = slow(1000);
    asking.now();
    const timer = setInterval(() => asking.changed(250), 100);
    await vi.advanceTimersByTimeAsync(1050);
    clearInterval(timer);
    expect(seen.answers).toEqual([1]);
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen).toEqual({ asked: 2, answers: [1, 2], failures: [] });
  });

  test("within a short time are one question", async () => {
    const { seen, asking } = slow(0);
    for (let each = 0; each < 5; each++) asking.changed(250);
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.answers).toEqual([1]);
  });
});

test("a question at once gives up the one before, and after the end nothing is asked or told", async () => {
  const { seen, asking } = slow(1000);
  asking.now();
  asking.now();
  await vi.advanceTimersByTimeAsync(1500);
  expect(seen).toEqual({ asked: 2, answers: [2], failures: [] });
  asking.now();
  asking.changed(100);
  asking.end();
  asking.now();
  asking.poll();
  await vi.advanceTimersByTimeAsync(5000);
  expect(seen).toEqual({ asked: 3, answers: [2], failures: [] });
});

describe("a change while a write of this console is not answered", () => {
  test("is asked for after the answer: a page that has deleted what it shows is closed by then", async () => {
    const { seen, asking } = slow(0);
    writeBegun();
    asking.changed(250);
    await vi.advanceTimersByTimeAsync(3000);
    expect(seen.asked).toBe(0);
    writeEnded();
    await vi.advanceTimersByTimeAsync(150);
    expect(seen.asked).toBe(0);
    asking.end();
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.asked).toBe(0);
  });

  test("is asked for in a while, though the answer does not come", async () => {
    const { seen, asking } = slow(0);
    writeBegun();
    asking.changed(250);
    await vi.advanceTimersByTimeAsync(5500);
    writeEnded();
    expect(seen.answers).toEqual([1]);
  });
});
