import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Operation, operations } from '../support/matrix-spec/matrix-spec.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';

/** Operations that only policy servers serve. */
const policyServerOperations = new Set(['POST /_matrix/policy/v1/sign']);

describe('the server-server API', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
  });
  after(() => server.stop());

  const serverServerOperations = operations().filter(({ api }) => api === 'server-server');

  /**
   * Sends an unsigned request: a known endpoint refuses it or answers with public data, an unknown one
   * answers M_UNRECOGNIZED.
   */
  async function isServed({ method, path }: Operation): Promise<boolean> {
    const url = path.replace(/\{[^}]*\}/g, 'x');
    const response = await fetch(server.baseUrl + url, {
      method,
      ...(method !== 'GET' && { body: '{}', headers: { 'content-type': 'application/json' } }),
    });
    const body = (await response.json().catch(() => ({}))) as { errcode?: string };
    return body.errcode !== 'M_UNRECOGNIZED';
  }

  it('serves all operations of the specification, except those of policy servers', async () => {
    const unserved: string[] = [];
    for (const operation of serverServerOperations) {
      const name = `${operation.method} ${operation.path}`;
      if (!policyServerOperations.has(name) && !(await isServed(operation))) unserved.push(name);
    }
    assert.ok(serverServerOperations.length > 30, 'the specification has more than 30 operations');
    assert.deepEqual(unserved, []);
  });

  it('returns the name of the software at GET /_matrix/federation/v1/version', async () => {
    const { body } = await server.api('GET', '/_matrix/federation/v1/version');
    assert.equal((body['server'] as { name?: string }).name, 'Hearth');
  });
});
