/** The query string of a call in the form that the API reads. */

const REPEATED = new Set(["category"]);

/** Lists in a query are comma-separated, except lists whose values may contain a comma. */
export function queryString(query: Record<string, unknown>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (!Array.isArray(value)) search.append(name, String(value));
    else if (REPEATED.has(name)) value.forEach((each) => search.append(name, String(each)));
    else if (value.length > 0) search.append(name, value.join(","));
  }
  return search.toString();
}
