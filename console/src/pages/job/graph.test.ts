import { expect, test } from "vitest";
import { places } from "./graph";

test("a task stands after all that it waits for", () => {
  const found = places([
    { task_id: 1, after: [] },
    { task_id: 2, after: [1] },
    { task_id: 3, after: [1] },
    { task_id: 4, after: [2, 3] },
    { task_id: 5, after: [1, 4] },
  ]);
  expect([...found.values()].map(({ column, row }) => [column, row])).toEqual([[0, 0], [1, 0], [1, 1], [2, 0], [3, 0]]);
});
