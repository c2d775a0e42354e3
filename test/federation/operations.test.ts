import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Operation, operations } from '../support/matrix-spec/matrix-spec.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';

/** What this server is not asked: policy servers are. */
const elsewhere = new Set(['POST /_matrix/policy/v1/sign']);

describe('the operations of the server-server API', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
  });
  after(() => server.stop());

  const asked = operations().filter(({ api }) => api === 'server-server');

  /** Nobody has signed the request: what is served refuses it, or answers what everybody may know. */
  async function isServed({ method, path }: Operation): Promise<boolean> {
    const url = path.replace(/\{[^}]*\}/g, 'x');
    const response = await fetch(server.baseUrl + url, {
      method,
      ...(method !== 'GET' && { body: '{}', headers: { 'content-type': 'application/json' } }),
    });
    const body = (await response.json().catch(() => ({}))) as { errcode?: string };
    return body.errcode !== 'M_UNRECOGNIZED';
  }

  it('are all served', async () => {
    const unserved: string[] = [];
    for (const operation of asked) {
      const name = `${operation.method} ${operation.path}`;
      if (!elsewhere.has(name) && !(await isServed(operation))) unserved.push(name);
    }
    assert.ok(asked.length > 30, 'the specification has been read');
    assert.deepEqual(unserved, []);
  });
});
