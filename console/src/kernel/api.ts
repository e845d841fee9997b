/** The typed client of the HTTP API. Types come from the product's own OpenAPI document. */

import createClient, { type Middleware } from "openapi-fetch";
import { asFailure, failureOf } from "./failure";
import type { components, paths } from "./openapi";
import { queryString } from "./queryString";
import { sessionEnded } from "./session";
import { noteServerTime } from "./time";
import { writeBegun, writeEnded } from "./writes";

export { Failure, asFailure, type FieldProblem } from "./failure";
export type Schemas = components["schemas"];
/** An Event, as the API shows it. */
export type MediaEvent = Schemas["Event"];

const writes = ({ method }: Request): boolean => method !== "GET";

const conventions: Middleware = {
  onRequest({ request }) {
    if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    if (writes(request)) writeBegun();
    return request;
  },
  onError({ request }) {
    if (writes(request)) writeEnded();
  },
  onResponse({ request, response }) {
    if (writes(request)) writeEnded();
    noteServerTime(response.headers.get("date"));
    if (response.status === 401) sessionEnded();
    return response;
  },
};

/** `api.GET("/api/event/", {params: {query: {…}}})`. Pass its result to `answered` or `found`. */
export const api = createClient<paths>({ baseUrl: location.origin, credentials: "same-origin", querySerializer: queryString });
api.use(conventions);

export interface Answer<T> {
  data: T;
  /** The version of the resource, for `ifMatch`. */
  etag: string | null;
  response: Response;
}

interface Called<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns the answer of a call, or throws its `Failure`. */
export async function answered<T>(call: Promise<Called<T>>): Promise<Answer<T>> {
  let called: Called<T>;
  try {
    called = await call;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    throw asFailure(thrown);
  }
  const { response } = called;
  if (!response.ok) throw failureOf(response.status, called.error, response.headers.get("x-transaction-id"));
  return { data: called.data as T, etag: response.headers.get("etag"), response };
}

/** Returns the answer of a GET of one resource. An empty answer (204) is a `Failure` with status 404. */
export async function found<T>(call: Promise<Called<T>>): Promise<Answer<NonNullable<T>>> {
  const answer = await answered(call);
  if (answer.response.status === 204 || answer.data === undefined || answer.data === null) {
    throw failureOf(404, undefined, answer.response.headers.get("x-transaction-id"));
  }
  return answer as Answer<NonNullable<T>>;
}

/** Returns the data of a call. */
export async function dataOf<T>(call: Promise<Called<T>>): Promise<T> {
  return (await answered(call)).data;
}

/** The header `client` that calls of the job engine with a key need. A session already names its client, so the header is not sent. */
export const NO_CLIENT = {} as { client: string };

/** Headers of a change that must not overwrite other changes made meanwhile: `{params, headers: ifMatch(answer.etag)}`. */
export function ifMatch(etag: string | null): Record<string, string> {
  return etag === null ? {} : { "If-Match": etag };
}

/** Returns the author of the newest change of an aggregate, from its history. Null if the caller may not read the audit. */
export async function fasterOne(aggregate: string, id: string): Promise<{ actor: string; at: string } | null> {
  const { data } = await api.GET("/api/audit/events/", { params: { query: { aggregate, id, order: "DESC", pageSize: 1 } } });
  const newest = data?.results[0];
  return newest ? { actor: newest.actor, at: newest.recordedAt } : null;
}
