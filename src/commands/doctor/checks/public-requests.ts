import { OutboundError, type OutboundResponse, type Target } from '../../../kernel/outbound/index.ts';
import type { Examination } from '../examination.ts';

/** Maximum milliseconds until a request is answered. */
const timeout = 10_000;

/** Maximum bytes of an answer. */
const maxBody = 256 * 1024;

/** The response to a request to a public name or address of the server, or the failure of the request. */
export type PublicAnswer = OutboundResponse | OutboundError;

/** Requests a URL like a client does. */
export async function requestUrl(
  { http, tls }: Pick<Examination, 'http' | 'tls'>,
  url: URL,
): Promise<PublicAnswer> {
  try {
    return await http.fetch(url, {
      timeout,
      maxBody,
      tls,
      redirects: 5,
      headers: { origin: 'https://client.example' },
    });
  } catch (cause) {
    return asOutboundError(cause);
  }
}

/** The address of a server, as another server discovers it. */
export type PublicEndpoint = Pick<Target, 'host' | 'port' | 'tlsName' | 'authority'>;

/** Requests a path of an endpoint like another server does. */
export async function requestEndpoint(
  { http, tls }: Pick<Examination, 'http' | 'tls'>,
  endpoint: PublicEndpoint,
  path: string,
): Promise<PublicAnswer> {
  try {
    return await http.send({ ...endpoint, tls, path }, { timeout, maxBody });
  } catch (cause) {
    return asOutboundError(cause);
  }
}

function asOutboundError(cause: unknown): OutboundError {
  if (cause instanceof OutboundError) return cause;
  throw cause;
}

/** Returns the JSON object of an answer; `undefined` for anything else. */
export function jsonOf(answer: PublicAnswer): Readonly<Record<string, unknown>> | undefined {
  if (answer instanceof OutboundError) return undefined;
  try {
    const value: unknown = JSON.parse(answer.body.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Describes an unexpected answer. */
export function describeAnswer(answer: PublicAnswer): string {
  if (answer instanceof OutboundError) return `nothing (${answer.message})`;
  return answer.status === 200 ? 'something other than this server' : `status ${answer.status}`;
}

/**
 * Whether the look-up of a name failed because the DNS servers were not reached, or refused or failed to look the name
 * up. The records of the name are then unknown.
 */
export function isUnanswered(error: unknown): boolean {
  const code = String((error as NodeJS.ErrnoException | undefined)?.code);
  return ['EAI_AGAIN', 'ETIMEOUT', 'ESERVFAIL', 'EREFUSED', 'ECONNREFUSED'].includes(code);
}

/**
 * Returns what the operator can change so that a request reaches this server.
 * @param path prefix of the paths that a reverse proxy has to pass on
 */
export function fixOf(answer: PublicAnswer, port: number, path: string): string {
  if (!(answer instanceof OutboundError)) {
    return answer.status >= 502
      ? 'the reverse proxy reaches no server: compare its upstream (nginx: proxy_pass) with the port of the listener in the configuration'
      : `let the reverse proxy pass the path on, unchanged. nginx: location ${path} { proxy_pass http://127.0.0.1:8008; }`;
  }
  if (answer.failure === 'unknown-host') {
    return isUnanswered(answer.cause)
      ? 'see the finding about the DNS servers'
      : 'add A and AAAA records for this name to the DNS';
  }
  if (answer.failure === 'tls') return 'see the findings about the certificate';
  return `open port ${port} in the firewall and the router, and let a listener or a reverse proxy serve it; ss -ltn 'sport = :${port}' shows whether one does. If curl from another network reaches the port, only this network cannot reach its own public address: add the name to /etc/hosts`;
}
