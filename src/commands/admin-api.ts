import { Client } from 'undici';
import { CommandFailure } from './failure.ts';
import type { ServerAddress } from './local-server.ts';
import { printable } from './printable.ts';

export type AdminMethod = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** The response of a server, whatever its status is. */
export interface AdminAnswer {
  readonly status: number;
  /** Empty when the response is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The body as text. */
  readonly text: string;
}

/** Calls the admin API of a running server. */
export interface AdminApi {
  /** The address as it was given on the command line, for messages. */
  readonly address: string;
  /**
   * Sends a request that must succeed.
   * @returns the JSON of the response
   * @throws CommandFailure if the server refuses the request or cannot be reached
   */
  call(method: AdminMethod, path: string, body?: object): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Sends a request.
   * @returns the response, whatever its status is
   * @throws CommandFailure if the server cannot be reached
   */
  send(method: AdminMethod, path: string, body?: object): Promise<AdminAnswer>;
  /** Returns the same server with an access token. */
  withToken(token: string): AdminApi;
}

/** Returns the admin API of the server at an address. @param token an access token, sent with every request */
export function adminApiAt({ address, certificate }: ServerAddress, token?: string): AdminApi {
  const client = clientFor(address, certificate);
  const send: AdminApi['send'] = async (method, path, body) => {
    const { statusCode: status, text } = await exchange(client, address, { method, path, token, body });
    return { status, body: parse(text) ?? {}, text };
  };
  return {
    address,
    send,
    withToken: (newToken) =>
      adminApiAt({ address, ...(certificate !== undefined && { certificate }) }, newToken),
    async call(method, path, body) {
      const answer = await send(method, path, body);
      if (answer.status >= 200 && answer.status < 300) return answer.body;
      throw new CommandFailure(`${address} answered ${answer.status}: ${reasonOf(answer)}`);
    },
  };
}

/** Returns the reason of an error response for the terminal. */
export function reasonOf({ status, body, text }: AdminAnswer): string {
  if (typeof body['error'] === 'string') return printable(body['error']);
  if (status === 404) return 'no admin API answers there; is this the address of the server?';
  return printable(text.slice(0, 200));
}

/** Returns a client for the server at an address. @param certificate as in `ServerAddress` */
function clientFor(address: string, certificate: string | undefined): Client {
  if (address.startsWith('unix:')) {
    return new Client('http://localhost', { connect: { socketPath: address.slice('unix:'.length) } });
  }
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new CommandFailure(
      `${address} is not the URL of a server; expected for example http://127.0.0.1:8008`,
    );
  }
  if (certificate === undefined) return new Client(url.origin);
  const pinned = { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
  return new Client(url.origin, { connect: pinned });
}

/** A request to the admin API. */
interface Exchange {
  readonly method: AdminMethod;
  readonly path: string;
  readonly token: string | undefined;
  readonly body: object | undefined;
}

async function exchange(client: Client, address: string, { method, path, token, body }: Exchange) {
  try {
    const response = await client.request({
      method,
      path,
      reset: true,
      // The server answers a change of many files only when it is done. This may take hours.
      ...(method !== 'GET' && { headersTimeout: 0 }),
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { statusCode: response.statusCode, text: await response.body.text() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailure(`${address} cannot be reached (${reason}). Is the server running?`);
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
