import { createServer, request as httpsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { authorize } from '../../../src/federation-client/requests/request-signature.ts';
import { canonicalJson, type JsonObject, type SigningKey, signJson } from '../../../src/protocol/index.ts';
import { newSigningKey } from '../../support/inputs/signing-key.ts';
import { freePort } from '../../support/network/free-port.ts';
import type { TestAuthority } from '../../support/network/test-authority.ts';
import { type Answer, readBody } from './compared-server.ts';

/**
 * A third server, which publishes its key, serves nothing else, and sends signed federation requests to the two
 * compared servers.
 */
export class SigningServer {
  readonly name: string;
  readonly key: SigningKey = newSigningKey('answers');
  readonly #authority: TestAuthority;
  readonly #server: ReturnType<typeof createServer>;

  private constructor(port: number, authority: TestAuthority) {
    this.name = `localhost:${port}`;
    this.#authority = authority;
    this.#server = createServer(authority.issue('localhost', '127.0.0.1'), ({ url }, response) => {
      const isKey = url?.startsWith('/_matrix/key/v2/server');
      const body = isKey ? this.#keys() : { errcode: 'M_NOT_FOUND', error: 'Nothing else is served' };
      response
        .writeHead(isKey ? 200 : 404, { 'content-type': 'application/json' })
        .end(canonicalJson(body, 'as written'));
    });
    this.#server.listen(port, '127.0.0.1');
  }

  static async start(authority: TestAuthority): Promise<SigningServer> {
    return new SigningServer(await freePort(), authority);
  }

  /** Sends a signed request. @param destination server name, whose port serves the federation API on the loopback address */
  request(destination: string, method: string, path: string, text: string | undefined): Promise<Answer> {
    const content = text === undefined ? undefined : canonicalText(text);
    const parts = { method, uri: path, origin: this.name, destination, content };
    const [servername = '', port] = destination.split(':');
    const headers = {
      host: destination,
      authorization: authorize(parts, this.key),
      ...(content !== undefined && { 'content-type': 'application/json' }),
    };
    return new Promise((resolve, reject) => {
      httpsRequest(
        { host: '127.0.0.1', port, servername, ca: this.#authority.pem, method, path, headers },
        async (response) => {
          const { statusCode = 0, headers: received } = response;
          const bytes = await buffer(response);
          resolve({
            status: statusCode,
            headers: Object.fromEntries(
              Object.entries(received).map(([name, value]) => [name, String(value)]),
            ),
            body: readBody(received['content-type'] ?? '', bytes),
          });
        },
      )
        .on('error', reject)
        .end(content);
    });
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #keys(): JsonObject {
    const content = {
      server_name: this.name,
      verify_keys: { [this.key.keyId]: { key: this.key.publicKey.base64 } },
      old_verify_keys: {},
      valid_until_ts: Date.now() + 86_400_000,
    };
    return signJson(content, this.name, this.key);
  }
}

/** Returns the canonical JSON of a text; the text itself when it is not JSON. */
function canonicalText(text: string): string {
  try {
    return canonicalJson(JSON.parse(text) as JsonObject, 'as written');
  } catch {
    return text;
  }
}
