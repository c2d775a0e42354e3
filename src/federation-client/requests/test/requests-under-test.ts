import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TlsOptions } from 'node:tls';
import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import type { Overrides } from '../../../../test/support/inputs/section-defaults.ts';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { serveOnLoopback } from '../../../../test/support/network/loopback.ts';
import { commonTestAuthority, type TestAuthority } from '../../../../test/support/network/test-authority.ts';
import {
  openTestFederation,
  type TestFederation,
} from '../../../../test/support/other-servers/federation.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { FederationClientConfig } from '../../config.ts';

export type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** The signing key of the requesting server. */
export const key = newSigningKey('k');

/** Sends a response with a JSON body. */
export const json = (response: ServerResponse, status: number, body: object, headers = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

/** Returns a request for the path `/x` of a server. */
export const get = (destination: string) => ({ destination, method: 'GET', path: '/_proto/x' }) as const;

/** A requesting server and the servers that respond, with TLS certificates. */
export class RequestsUnderTest {
  readonly authority: TestAuthority = commonTestAuthority();
  readonly #defaultTls: TlsOptions = this.authority.issue('a.example', 'b.example');
  readonly #opened: { close(): Promise<void> | void }[] = [];

  /** Opens the requesting server `here.example`. */
  async client(
    open: OpenDatabase,
    options: Overrides<FederationClientConfig> = {},
    database?: Database,
  ): Promise<TestFederation> {
    const { authority } = this;
    const opening = { name: 'here.example', key, authority, options, open, ...(database && { database }) };
    const here = await openTestFederation(opening);
    this.#opened.push(here);
    return here;
  }

  /** Starts a server that calls `listener` for each request. Its name is `a.example` with its port. */
  async serve(listener: Listener, tls: TlsOptions = {}) {
    const server = await serveOnLoopback(listener, { ...this.#defaultTls, ...tls });
    this.#opened.push(server);
    return { ...server, name: `a.example:${server.port}` };
  }

  /** Closes everything in the reverse order of opening. */
  async close(): Promise<void> {
    for (const opened of this.#opened.splice(0).reverse()) await opened.close();
  }
}
