import assert from 'node:assert/strict';
import type { ApiAnswer, ApiRequest, TestServer } from '../../../test/support/servers/server.ts';
import { registerAdmin } from '../../../test/support/users/register-admin.ts';
import type { TestClient } from '../../../test/support/users/test-client.ts';

type Query = NonNullable<ApiRequest['query']>;

/** Sends requests to the admin API as an administrator of a test server. */
export class Administration {
  readonly server: TestServer;
  /** The administrator, for requests of the client API. */
  readonly admin: TestClient;

  private constructor(server: TestServer, admin: TestClient) {
    this.server = server;
    this.admin = admin;
  }

  static async open(server: TestServer): Promise<Administration> {
    return new Administration(server, await registerAdmin(server));
  }

  /** @param path below `/_synapse/admin` */
  call(method: string, path: string, body?: unknown, query: Query = {}): Promise<ApiAnswer> {
    return this.admin.request(method, `/_synapse/admin${path}`, body, query);
  }

  /** Sends a request that must succeed. @returns the response body */
  async do(
    method: string,
    path: string,
    body?: unknown,
    query: Query = {},
  ): Promise<Record<string, unknown>> {
    const answer = await this.call(method, path, body, query);
    assert.ok(answer.status === 200 || answer.status === 201, `${method} ${path}: ${answer.raw}`);
    return answer.body;
  }

  /** Sends a request that must be refused. @returns the status and the errcode */
  async refused(method: string, path: string, body?: unknown, query: Query = {}) {
    const answer = await this.call(method, path, body, query);
    assert.ok(answer.status >= 400, `${method} ${path} was accepted: ${answer.raw}`);
    return [answer.status, answer.body['errcode']];
  }
}
