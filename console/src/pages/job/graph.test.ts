import { expect, test } from "vitest";
import { places } from "./graph";

test("a task stands after all that it waits for", () => {
  const found = places([
    { id: 1, after: [] },
    { id: 2, after: [1] },
    { id: 3, after: [1] },
    { id: 4, after: [2, 3] },
    { id: 5, after: [1, 4] },
  ]);
  expect([...found.values()].map(({ column, row }) => [column, row])).toEqual([[0, 0], [1, 0], [1, 1], [2, 0], [3, 0]]);
});
