/**
 * An error with an errcode that is returned to a client or to another server.
 * Source: client-server API, "Standard error response".
 */
export class MatrixError extends Error {
  override readonly name = 'MatrixError';
  /** HTTP status code. */
  readonly status: number;
  readonly errcode: string;
  /** Further fields of the response body, for instance `retry_after_ms`. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** Further response headers, for instance `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    errcode: string,
    message: string,
    extra: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.errcode = errcode;
    this.extra = extra;
    this.headers = headers;
  }

  /** The response body. */
  toJSON(): Record<string, unknown> {
    return { errcode: this.errcode, error: this.message, ...this.extra };
  }
}

/** The body is JSON, but not of the required form. */
export const badJson = (message: string) => new MatrixError(400, 'M_BAD_JSON', message);
/** The body is not JSON. */
export const notJson = (message: string) => new MatrixError(400, 'M_NOT_JSON', message);
/** A parameter is invalid. */
export const invalidParam = (message: string) => new MatrixError(400, 'M_INVALID_PARAM', message);
/** A required parameter is missing. */
export const missingParam = (message: string) => new MatrixError(400, 'M_MISSING_PARAM', message);
/** The requester may not do this. */
export const forbidden = (message: string) => new MatrixError(403, 'M_FORBIDDEN', message);
/** The account of the requester is suspended. Source: client-server API, "Account suspension". */
export const suspended = () =>
  new MatrixError(403, 'M_USER_SUSPENDED', 'You cannot do this while your account is suspended');
/** The resource does not exist, or the requester must not learn that it exists. */
export const notFound = (message: string) => new MatrixError(404, 'M_NOT_FOUND', message);
/** The request, or a value in it, is too large. */
export const tooLarge = (message: string) => new MatrixError(413, 'M_TOO_LARGE', message);
/** The server has no such endpoint (404), or not with this HTTP method (405). */
export const unrecognized = (message: string, status: 404 | 405 = 404) =>
  new MatrixError(status, 'M_UNRECOGNIZED', message);
/** An error for which the specification has no other errcode. */
export const unknown = (message: string, status = 500) => new MatrixError(status, 'M_UNKNOWN', message);
/** The requester is over a rate limit. Rounds `Retry-After` up to whole seconds, as HTTP requires. */
export const limitExceeded = (retryAfterMs: number) =>
  new MatrixError(
    429,
    'M_LIMIT_EXCEEDED',
    'Too many requests',
    { retry_after_ms: Math.ceil(retryAfterMs) },
    { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) },
  );
