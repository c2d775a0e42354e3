import { type JsonObject, MatrixError, unknown } from '../../protocol/index.ts';

/** A failed request to another server. */
export abstract class FederationError extends Error {
  readonly destination: string;

  constructor(destination: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.destination = destination;
  }
}

/**
 * The server cannot be reached: its name does not lead to a server, the connection failed, it did not respond, or it is
 * in backoff after an earlier failure.
 */
export class ServerUnavailable extends FederationError {
  override readonly name = 'ServerUnavailable';
  /** End of the backoff, in milliseconds since the epoch; `undefined` when the server is not in backoff. */
  readonly retryAt: number | undefined;

  constructor(destination: string, options: ErrorOptions & { readonly retryAt?: number } = {}) {
    super(destination, `${destination} cannot be reached`, options);
    this.retryAt = options.retryAt;
  }
}

/** The server responded with an error. */
export class RemoteError extends FederationError {
  override readonly name = 'RemoteError';
  readonly status: number;
  /** `M_UNKNOWN` when the response contains no errcode. */
  readonly errcode: string;
  /** The whole response if it is JSON, for example with `room_version` of M_INCOMPATIBLE_ROOM_VERSION. */
  readonly body: JsonObject;
  /** Milliseconds to wait before a retry, as the server has requested. */
  readonly retryAfter: number | undefined;

  constructor(destination: string, status: number, body: JsonObject, retryAfter?: number) {
    const { error, errcode } = body;
    super(
      destination,
      typeof error === 'string' ? error.slice(0, 1_000) : `${destination} answered ${status}`,
    );
    this.status = status;
    this.errcode = typeof errcode === 'string' ? errcode.slice(0, 255) : 'M_UNKNOWN';
    this.body = body;
    this.retryAfter = retryAfter;
  }

  /** Whether the server does not have the endpoint. Source: server-server API, "Unsupported endpoints". */
  get isUnrecognized(): boolean {
    const withoutCode = this.body.errcode === undefined;
    return [404, 405].includes(this.status) && (withoutCode || this.errcode === 'M_UNRECOGNIZED');
  }

  /** Whether the error is due to the state of the server, not to the request. */
  get isServerFault(): boolean {
    return (this.status >= 500 && !mediaCodes.has(this.errcode)) || this.status === 429;
  }
}

/** Errcodes with a status above 500 that healthy servers send for media that are missing or too large. */
const mediaCodes = new Set(['M_NOT_YET_UPLOADED', 'M_TOO_LARGE']);

/** The server responded with success, but with invalid content. */
export class MalformedResponse extends FederationError {
  override readonly name = 'MalformedResponse';

  constructor(destination: string, problem: string, options?: ErrorOptions) {
    super(destination, `${destination} sent an invalid response: ${problem}`, options);
  }
}

/**
 * Errcodes about a session or an account. Clients must not receive them from another server: a client would believe
 * that its own session has ended, for example.
 */
const sessionCodes = new Set([
  'M_UNKNOWN_TOKEN',
  'M_MISSING_TOKEN',
  'M_UNAUTHORIZED',
  'M_USER_DEACTIVATED',
  'M_USER_LOCKED',
  'M_USER_SUSPENDED',
  'M_CONSENT_NOT_GIVEN',
]);

/**
 * Returns the error for a client whose request failed at another server. If that server refused the request, the error
 * has its status (4xx) and errcode, otherwise 502 (decision 0091). Errors of other kinds are returned unchanged.
 */
export function errorForClient(error: unknown): unknown {
  if (!(error instanceof FederationError)) return error;
  if (!(error instanceof RemoteError) || !isRefusal(error)) return unknown(error.message, 502);
  const { room_version: roomVersion } = error.body;
  const extra = {
    ...(typeof roomVersion === 'string' && { room_version: roomVersion }),
    ...(error.retryAfter !== undefined && { retry_after_ms: error.retryAfter }),
  };
  return new MatrixError(error.status, error.errcode, error.message, extra);
}

/**
 * Whether the server refused the request of the client. With 401, or an errcode about a session, it refuses this server
 * instead.
 */
const isRefusal = ({ status, errcode }: RemoteError) =>
  status >= 400 && status < 500 && status !== 401 && !sessionCodes.has(errcode);
