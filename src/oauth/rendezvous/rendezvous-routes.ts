import { Type } from 'typebox';
import type { Limiter } from '../../accounts/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Reply, type Route, type RouteRequest, route } from '../../kernel/http/index.ts';
import {
  forbidden,
  invalidParam,
  MatrixError,
  missingParam,
  notFound,
  tooLarge,
} from '../../protocol/index.ts';
import type { Endpoints } from '../endpoints.ts';
import { maxDataBytes, type Rendezvous, type RendezvousData } from './rendezvous.ts';

export interface RendezvousDeps {
  /** Sessions of MSC4108. */
  readonly msc4108: Rendezvous;
  /** Sessions of MSC4388. */
  readonly msc4388: Rendezvous;
  readonly endpoints: Endpoints;
  readonly clock: Clock;
  /** Limits new sessions by the address of the client. */
  readonly limiter: Limiter;
}

const sessionPath = '/_server/client/rendezvous';

/** The exchange of data between two devices when a device logs in by a QR code. Source: MSC4108 of 2024, and MSC4388. */
export function rendezvousRoutes(deps: RendezvousDeps): Route[] {
  return [...msc4108Routes(deps), ...msc4388Routes(deps)];
}

/** The routes of MSC4108: text with an `ETag`. */
function msc4108Routes({ msc4108, endpoints, limiter }: RendezvousDeps): Route[] {
  const contract = { auth: 'none', bodyLimit: maxDataBytes, bodyMode: 'stream' } as const;
  const path = `${sessionPath}/:id` as const;
  return [
    route(
      {
        ...contract,
        method: 'POST',
        path: ['/_proto/client/unstable/org.matrix.msc4108/rendezvous', sessionPath],
      },
      async (request) => {
        const text = await textOf(request);
        limiter.take(request.ip);
        const { id, ...session } = msc4108.create(text, request.ip);
        return new Reply(201, { url: endpoints.url(`${sessionPath}/${id}`) }, headersOf(session));
      },
    ),
    route({ method: 'GET', auth: 'none', path }, ({ params, headers }) => {
      const session = existing(msc4108.read(params.id));
      if (headers['if-none-match'] === `"${session.token}"`)
        return new Reply(304, undefined, headersOf(session));
      return new Reply(200, session.data, { ...headersOf(session), ...textHeaders });
    }),
    route({ ...contract, method: 'PUT', path }, async (request) => {
      const text = await textOf(request);
      const { id } = request.params;
      const token = request.headers['if-match'];
      if (typeof token !== 'string') throw missingParam('The header If-Match is missing');
      const written = msc4108.write(id, token.replaceAll('"', ''), text);
      const session = existing(msc4108.read(id));
      if (written === 'conflict') {
        const error = { errcode: 'M_UNKNOWN', error: 'Another device has written in the meantime' };
        const body = { ...error, 'org.matrix.msc4108.errcode': 'M_CONCURRENT_WRITE' };
        return new Reply(412, body, headersOf(session));
      }
      return new Reply(202, '', { ...headersOf(session), ...textHeaders });
    }),
    route({ method: 'DELETE', auth: 'none', path }, ({ params }) => {
      if (!msc4108.delete(params.id)) throw unknownSession();
      return new Reply(204);
    }),
  ];
}

/** The routes of MSC4388: JSON with a sequence token. */
function msc4388Routes({ msc4388, limiter, clock }: RendezvousDeps): Route[] {
  const basePath = '/_proto/client/unstable/io.element.msc4388/rendezvous';
  const path = `${basePath}/:id` as const;
  const data = Type.String({ maxLength: maxDataBytes });
  const bodyLimit = 2 * maxDataBytes;
  return [
    route({ method: 'GET', auth: 'none', path: basePath }, () => ({ create_available: true })),
    route(
      { method: 'POST', auth: 'none', path: basePath, bodyLimit, body: Type.Object({ data }) },
      ({ body, ip }) => {
        checkBytes(body.data);
        limiter.take(ip);
        const { id, token, expiresAt, changedAt } = msc4388.create(body.data, ip);
        return { id, sequence_token: token, expires_in_ms: expiresAt - changedAt };
      },
    ),
    route({ method: 'GET', auth: 'none', path }, ({ params, headers }) => {
      requireScript(headers);
      const { data, token, expiresAt } = existing(msc4388.read(params.id));
      return new Reply(
        200,
        { data, sequence_token: token, expires_in_ms: expiresAt - clock.now() },
        { 'Cache-Control': 'no-store' },
      );
    }),
    route(
      {
        method: 'PUT',
        auth: 'none',
        path,
        bodyLimit,
        body: Type.Object({ data, sequence_token: Type.String({ maxLength: 100 }) }),
      },
      ({ params, body }) => {
        checkBytes(body.data);
        const written = msc4388.write(params.id, body.sequence_token, body.data);
        if (written === 'conflict') {
          const message = 'Another device has written in the meantime';
          throw new MatrixError(409, 'IO_ELEMENT_MSC4388_CONCURRENT_WRITE', message);
        }
        return { sequence_token: existing(msc4388.read(params.id)).token };
      },
    ),
    route({ method: 'DELETE', auth: 'none', path }, ({ params }) => {
      if (!msc4388.delete(params.id)) throw unknownSession();
      return {};
    }),
  ];
}

const unknownSession = () => notFound('Unknown or expired rendezvous session');

/**
 * Returns the data of an existing session.
 * @throws MatrixError M_NOT_FOUND
 */
function existing(session: RendezvousData | undefined): RendezvousData {
  if (session === undefined) throw unknownSession();
  return session;
}

/**
 * Reads the body of a request as text.
 * @throws MatrixError M_INVALID_PARAM when the content type is not `text/plain`, M_TOO_LARGE
 */
async function textOf({ headers, stream }: Pick<RouteRequest, 'headers' | 'stream'>): Promise<string> {
  if (!/^text\/plain\s*(;|$)/i.test(String(headers['content-type'])))
    throw invalidParam('Content-Type must be text/plain');
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream ?? []) {
    chunks.push(chunk as Buffer);
    length += chunk.length;
    if (length > maxDataBytes) throw tooLarge('The data is too large');
  }
  return Buffer.concat(chunks).toString();
}

/**
 * Requires that data fit into a session.
 * @throws MatrixError M_TOO_LARGE
 */
function checkBytes(data: string): void {
  if (Buffer.byteLength(data) > maxDataBytes) throw tooLarge('The data is too large');
}

/**
 * Rejects requests of a browser that would show the response to its user: an attacker could ask the user to read it
 * out.
 * Source: MSC4388, "Security considerations".
 * @throws MatrixError M_FORBIDDEN
 */
function requireScript(headers: RouteRequest['headers']): void {
  const isShown =
    String(headers['sec-fetch-dest'] ?? 'empty') !== 'empty' ||
    headers['sec-fetch-mode'] === 'navigate' ||
    headers['sec-fetch-user'] === '?1' ||
    headers['sec-fetch-site'] === 'none';
  if (isShown) throw forbidden('A browser cannot show the data of a rendezvous session');
}

/** Headers of data that an unauthenticated client has written: browsers show it as text and run nothing in it (MSC4108). */
const textHeaders = {
  'Content-Type': 'text/plain',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
};

/**
 * Returns the headers of a session. Scripts of web clients can read the headers that `Access-Control-Expose-Headers`
 * names.
 */
const headersOf = ({ token, expiresAt, changedAt }: RendezvousData) => ({
  ETag: `"${token}"`,
  Expires: new Date(expiresAt).toUTCString(),
  'Last-Modified': new Date(changedAt).toUTCString(),
  'Cache-Control': 'no-store, no-transform',
  Pragma: 'no-cache',
  'Access-Control-Expose-Headers': 'ETag, Expires, Last-Modified',
});
