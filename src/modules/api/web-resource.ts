import type { JsonObject } from '../../protocol/index.ts';

/** The user whose access token a request carries. */
export interface WebUser {
  readonly userId: string;
  /** Absent for application services that act without a device. */
  readonly deviceId: string | undefined;
  readonly isGuest: boolean;
  readonly isAdmin: boolean;
}

export interface WebRequest {
  /** `GET` (also for HEAD), `POST`, `PUT` or `DELETE`. */
  readonly method: string;
  /** Path and query as the client sent them. */
  readonly url: string;
  /** The decoded path below the path of the resource, without a slash at its beginning; empty for the path itself. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Values by header name in lowercase. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** At most 1 MiB; longer ones are rejected with M_TOO_LARGE. */
  readonly body: Uint8Array;
  /** Address of the client. */
  readonly ip: string;
  /** Aborts when the client disconnects or the server stops. */
  readonly signal: AbortSignal;
  /**
   * Checks the access token of the request.
   * @returns `undefined` without a token
   * @throws an error that answers the request with M_UNKNOWN_TOKEN, when the handler does not catch it
   */
  user(): Promise<WebUser | undefined>;
}

export interface WebResponse {
  /** 200 when absent. */
  readonly status?: number;
  /** A text needs a `content-type`; an object is sent as JSON. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | JsonObject;
}

/**
 * Answers the requests to a path and to all paths below. When it fails or takes longer than 30 seconds, the server answers with
 * status 500.
 */
export type WebHandler = (request: WebRequest) => WebResponse | Promise<WebResponse>;
