import { createHttpServer, type HttpServer, type Route } from '../../../src/kernel/http/index.ts';
import { silentLogger } from '../../../src/kernel/observability/index.ts';
import { type JsonObject, MatrixError } from '../../../src/protocol/index.ts';
import type { ManualClock } from '../clocks/manual-clock.ts';
import { callApi } from '../servers/api-call.ts';
import type { Answer } from './rooms.ts';

/**
 * Serves federation routes over HTTP; the server name alone authenticates a request. Responses are validated
 * against the specification.
 */
export class ServerRoutesUnderTest {
  readonly #http: HttpServer;
  readonly #base: string;

  private constructor(http: HttpServer, base: string) {
    this.#http = http;
    this.#base = base;
  }

  static async start(routes: readonly Route[], clock: ManualClock): Promise<ServerRoutesUnderTest> {
    const http = createHttpServer({
      listeners: [
        {
          name: 'test',
          bind: { kind: 'tcp', port: 0, addresses: ['127.0.0.1'], tls: undefined },
          resources: [{ names: ['federation'], compress: false }],
          forwarded: false,
          requestIdHeader: undefined,
        },
      ],
      routes,
      authenticator: { authenticate: () => Promise.reject(new Error('federation routes need no user')) },
      serverAuthenticator: {
        async readSignature({ authorization: [origin] }) {
          if (origin === undefined)
            throw new MatrixError(401, 'M_UNAUTHORIZED', 'The request has no signature');
          return { origin, verify: () => Promise.resolve(), covers: () => Promise.resolve(true) };
        },
      },
      log: silentLogger,
      clock,
    });
    const [base = ''] = await http.start();
    return new ServerRoutesUnderTest(http, base);
  }

  /**
   * @param origin absent for an unsigned request
   * @param path below `/_matrix/federation/v1`
   */
  async request(
    origin: string | undefined,
    method: string,
    path: string,
    body?: JsonObject,
  ): Promise<Answer> {
    const answer = await callApi(this.#base, method, `/_matrix/federation/v1${path}`, {
      body: body === undefined ? undefined : JSON.stringify(body),
      ...(origin !== undefined && { headers: { authorization: origin } }),
    });
    return { status: answer.status, body: answer.body };
  }

  async stop(): Promise<void> {
    await this.#http.stop(0);
  }
}
