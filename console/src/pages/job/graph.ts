/** Where the tasks of a job stand in its picture: columns by what they wait for. */

interface Node {
  task_id: number;
  after: readonly number[];
}

export interface Place {
  column: number;
  row: number;
}

/** A task stands one column after the last that it waits for; tasks of one column below each other. */
export function places(tasks: readonly Node[]): Map<number, Place> {
  const found = new Map<number, Place>();
  const rows: number[] = [];
  for (const task of tasks) {
    const column = task.after.reduce((most, before) => Math.max(most, (found.get(before)?.column ?? -1) + 1), 0);
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    found.set(task.task_id, { column, row });
  }
  return found;
}
