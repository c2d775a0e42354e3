/**
 * Why a request failed before there was an answer to look at:
 * - `refused-address`: every address of the target is one that the operator does not allow;
 * - `unknown-host`: the name has no address;
 * - `connection`: nobody listens, or the connection broke;
 * - `tls`: no secure connection, mostly because of a certificate;
 * - `proxy`: the proxy would not connect;
 * - `timeout`, `aborted`;
 * - `too-large`: the answer exceeds what the caller takes, also after it is unpacked;
 * - `redirect`: too many, or to where none may lead;
 * - `protocol`: what came is not HTTP as it should be.
 */
export type OutboundFailure =
  | 'refused-address'
  | 'unknown-host'
  | 'connection'
  | 'tls'
  | 'proxy'
  | 'timeout'
  | 'aborted'
  | 'too-large'
  | 'redirect'
  | 'protocol';

/** A request that failed. The cause, where there is one, is for the log: it may name addresses inside the house. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.failure = failure;
  }

  /** Whether the same request may succeed a little later. */
  get isPassing(): boolean {
    return ['connection', 'timeout', 'proxy', 'unknown-host'].includes(this.failure);
  }
}

const byCode: Readonly<Record<string, OutboundFailure>> = {
  ENOTFOUND: 'unknown-host',
  EAI_AGAIN: 'unknown-host',
  EAI_NODATA: 'unknown-host',
  EAI_FAIL: 'unknown-host',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_SOCKET: 'connection',
  EPROTO: 'tls',
};

const tlsCode =
  /^(CERT_|CRL_|ERR_TLS|ERR_SSL|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|INVALID_CA|EE_KEY)/;
const protocolCode = /^(HPE_|UND_ERR_|Z_|ERR_HTTP|ERR_INVALID)/;

/** Whatever the libraries below throw, as an `OutboundError`. */
export function toOutboundError(error: unknown): OutboundError {
  if (error instanceof OutboundError) return error;
  const { code, message } = describe(error);
  if (error instanceof Error && error.name === 'AbortError') {
    return error.cause instanceof OutboundError
      ? error.cause
      : new OutboundError('aborted', 'The request was aborted', { cause: error });
  }
  const isParserError = error instanceof Error && error.name === 'HTTPParserError';
  return new OutboundError(isParserError ? 'protocol' : failureOf(code), message, { cause: error });
}

function failureOf(code: string): OutboundFailure {
  const known = byCode[code];
  if (known !== undefined) return known;
  if (tlsCode.test(code)) return 'tls';
  return protocolCode.test(code) ? 'protocol' : 'connection';
}

function describe(error: unknown): { code: string; message: string } {
  if (!(error instanceof Error)) return { code: '', message: String(error) };
  const { code } = error as NodeJS.ErrnoException;
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const message = error.message === '' && first instanceof Error ? first.message : error.message;
  return { code: typeof code === 'string' ? code : '', message };
}
