/**
 * Why a request failed without a complete response:
 * - `refused-address`: the operator allows none of the addresses of the target, or the caller refused a redirect;
 * - `unknown-host`: the name has no address;
 * - `connection`: the connection was refused or broke;
 * - `tls`: the TLS handshake failed, mostly because of a certificate;
 * - `proxy`: the proxy did not connect;
 * - `timeout`: no complete response arrived in time;
 * - `aborted`: the caller aborted the request, or this server stops;
 * - `too-large`: the response exceeds the limit of the caller, before or after decompression;
 * - `redirect`: too many redirects, or a redirect to a URL that is not http or https, or from https to http;
 * - `protocol`: the response is not valid HTTP, or has an encoding that was not offered.
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

/** A failed request. Its message and its cause are for operators only: they may contain internal addresses. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly failure: OutboundFailure;

  constructor(failure: OutboundFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.failure = failure;
  }

  /** Whether the same request may succeed a little later. */
  get isTransient(): boolean {
    return ['connection', 'timeout', 'proxy', 'unknown-host'].includes(this.failure);
  }
}

/** Returns the error of a request that its caller aborted. */
export const requestAborted = (cause?: unknown): OutboundError =>
  new OutboundError('aborted', 'The request was aborted', { cause });

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

/** Converts an error of the HTTP client, of TLS or of the DNS to an `OutboundError`. */
export function toOutboundError(error: unknown): OutboundError {
  if (error instanceof OutboundError) return error;
  const { code, message } = describe(error);
  if (error instanceof Error && error.name === 'AbortError') {
    return error.cause instanceof OutboundError ? error.cause : requestAborted(error);
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
