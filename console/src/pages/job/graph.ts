/** The positions of the tasks of a job in its picture: columns by their dependencies. */

interface Node {
  task_id: number;
  after: readonly number[];
}

export interface Place {
  column: number;
  row: number;
}

/** Returns the positions. A task is one column after the last task that it waits for; tasks of one column are below each other. */
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
