/** An error of a call of any surface: problem documents (RFC 9457), `{"error"}` of the job engine, or no answer. */

export interface FieldProblem {
  field: string;
  message: string;
}

export class Failure extends Error {
  override name = "Failure";

  constructor(
    /** The HTTP status; 0 without an answer. */
    readonly status: number,
    /** A sentence for people. */
    readonly detail: string,
    readonly fields: readonly FieldProblem[] = [],
    /** The X-Transaction-ID, which is also in the log of the server. */
    readonly transactionId: string | null = null,
  ) {
    super(detail);
  }

  /** True if the resource was changed since it was read. */
  get wasOvertaken(): boolean {
    return this.status === 412;
  }

  get isAbsent(): boolean {
    return this.status === 404;
  }

  /** The fault of one field of a form. Names ignore case, as on the server. */
  of(field: string): string | undefined {
    return this.fields.find((each) => each.field.toLowerCase() === field.toLowerCase())?.message;
  }
}

const SENTENCES: Record<number, string> = {
  401: "You are not logged in.",
  403: "Your role does not allow this.",
  404: "It does not exist.",
  412: "It was changed since you opened it.",
  429: "Too many requests. Try again in a moment.",
  502: "The server cannot be reached through the proxy.",
  503: "The service is not available at the moment.",
};

export function failureOf(status: number, body: unknown, transactionId: string | null = null): Failure {
  const said = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const detail = [said["detail"], said["error"]].find((each) => typeof each === "string" && each !== "") as string | undefined;
  const fallback = SENTENCES[status] ?? `The server answered with status ${status}.`;
  const sentence = status === 412 ? SENTENCES[412]! : (detail ?? fallback);
  return new Failure(status, sentence, fieldsOf(said["errors"]), transactionId);
}

function fieldsOf(errors: unknown): FieldProblem[] {
  if (!Array.isArray(errors)) return [];
  return errors.filter((each): each is FieldProblem => typeof each?.field === "string" && typeof each?.message === "string");
}

export const END_BEFORE_START = "The end must be after the start.";

/** Throws a failure of the form if the end is not after the start. Invalid times are checked by the server. */
export function checkOrder(start: number | null, end: number | null, field: string): void {
  if (start !== null && end !== null && end <= start) throw new Failure(400, "It cannot be saved like this.", [{ field, message: END_BEFORE_START }]);
}

/** Converts a thrown value to a `Failure`. A `TypeError` of `fetch` means that no answer arrived. */
export function asFailure(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof TypeError) return new Failure(0, "The server cannot be reached.");
  if (thrown instanceof DOMException && thrown.name === "TimeoutError") return new Failure(0, "The server does not answer.");
  return new Failure(0, thrown instanceof Error ? thrown.message : String(thrown));
}
