import { type JsonObject, MatrixError, unknown } from '../../protocol/index.ts';

/** A request to another server that did not succeed. */
export abstract class FederationError extends Error {
  readonly destination: string;

  constructor(destination: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.destination = destination;
  }
}

/** The server could not be asked: it is not there, does not answer, or is being left alone because of that. */
export class ServerUnavailable extends FederationError {
  override readonly name = 'ServerUnavailable';
  /** Until when it is left alone, in milliseconds since the epoch. */
  readonly retryAt: number | undefined;

  constructor(destination: string, options: ErrorOptions & { readonly retryAt?: number } = {}) {
    super(destination, `${destination} can not be reached`, options);
    this.retryAt = options.retryAt;
  }
}

/** The server has answered with an error. */
export class RemoteError extends FederationError {
  override readonly name = 'RemoteError';
  readonly status: number;
  /** `M_UNKNOWN` when the answer does not say. */
  readonly errcode: string;
  /** The whole answer, when it is JSON: `room_version` of M_INCOMPATIBLE_ROOM_VERSION, for instance. */
  readonly body: JsonObject;
  /** After how many milliseconds it wants to be asked again. */
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

  /** Whether it says that it does not know the endpoint. Source: server-server API, "Unsupported endpoints". */
  get isUnrecognized(): boolean {
    const withoutCode = this.body.errcode === undefined;
    return [404, 405].includes(this.status) && (withoutCode || this.errcode === 'M_UNRECOGNIZED');
  }

  /** Whether it is the server that is unwell, and not the request. */
  get isServerFault(): boolean {
    return (this.status >= 500 && !mediaCodes.has(this.errcode)) || this.status === 429;
  }
}

/** Codes with which a server that is well says why it has no media to give; their status is above 500. */
const mediaCodes = new Set(['M_NOT_YET_UPLOADED', 'M_TOO_LARGE']);

/** The server has answered with success, and with something that makes no sense. */
export class MalformedResponse extends FederationError {
  override readonly name = 'MalformedResponse';

  constructor(destination: string, what: string, options?: ErrorOptions) {
    super(destination, `${destination} has sent an answer that makes no sense: ${what}`, options);
  }
}

/** Codes that mean to a client what they mean to us; others could make it believe that it is logged out. */
const passedOnCodes = new Set([
  'M_FORBIDDEN',
  'M_NOT_FOUND',
  'M_BAD_STATE',
  'M_INCOMPATIBLE_ROOM_VERSION',
  'M_UNSUPPORTED_ROOM_VERSION',
  'M_UNABLE_TO_AUTHORISE_JOIN',
  'M_UNABLE_TO_GRANT_JOIN',
  'M_INVITE_BLOCKED',
  'M_UNRECOGNIZED',
  'M_INVALID_PARAM',
  'M_TOO_LARGE',
  'M_LIMIT_EXCEEDED',
]);

/** What a client is told when a request on its behalf has failed. Errors that are not of federation stay as they are. */
export function errorForClient(error: unknown): unknown {
  if (!(error instanceof FederationError)) return error;
  if (error instanceof RemoteError && error.status < 500 && passedOnCodes.has(error.errcode)) {
    const { room_version: roomVersion } = error.body;
    const extra = typeof roomVersion === 'string' ? { room_version: roomVersion } : {};
    return new MatrixError(error.status, error.errcode, error.message, extra);
  }
  return unknown(error.message, 502);
}
