import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ModuleApi } from 'hearth/module';
import { selectedDatabases } from '../support/databases/databases.ts';
import { ModuleServer, moduleFile, moduleListener } from './module-server.ts';
import { resources } from './registering-module.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`web resources of modules on ${database}`, () => {
    let fixture: ModuleServer;
    let otherListener: string;
    before(async () => {
      resources.set('resource', (config) => () => ({
        headers: { 'content-type': 'text/plain' },
        body: JSON.stringify(config),
      }));
      const resource = { module: moduleFile, config: { key: 'resource', a: 1 } };
      fixture = await ModuleServer.start({
        database,
        register: registerResources,
        config: {
          http: {
            listeners: [
              { ...moduleListener, additional_resources: { '/my/path': resource } },
              moduleListener,
            ],
          },
        },
        listening: (addresses) => {
          otherListener = addresses[1]!;
        },
      });
    });
    after(() => fixture.stop());

    it('passes modules their configuration, and the requests to the paths of their web resources and below these paths [option: modules[].module, modules[].config]', async () => {
      assert.deepEqual(fixture.config, { key: 'event callbacks', more: [1] });
      assert.equal(fixture.api.serverName, 'test');
      for (const prefix of ['/_synapse', '/_server']) {
        const answer = await fixture.server.api('POST', `${prefix}/client/test/a%20b/c?q=1`, {
          token: fixture.alice.token,
          body: { x: 1 },
        });
        assert.deepEqual(
          [answer.status, answer.headers.get('x-test'), answer.body],
          [
            202,
            'yes',
            { method: 'POST', path: 'a b/c', q: '1', body: '{"x":1}', user: fixture.alice.userId },
          ],
        );
      }
      const plain = await fixture.server.api('GET', '/_synapse/client/test');
      assert.deepEqual([plain.body['path'], plain.body['user']], ['', null]);
      const unknownToken = await fixture.server.api('GET', '/_synapse/client/test', { token: 'nonsense' });
      assert.deepEqual([unknownToken.status, unknownToken.body['errcode']], [401, 'M_UNKNOWN_TOKEN']);
      const broken = await fixture.server.api('GET', '/_synapse/client/broken');
      assert.deepEqual([broken.status, broken.body['errcode']], [500, 'M_UNKNOWN']);
      assert.equal((await fixture.server.api('GET', '/_synapse/client/testing')).status, 404);
    });

    it('answers 500 when the answer of a web resource of a module cannot be sent, and counts the failure in metrics', async () => {
      const failuresBefore = await fixture.failures('web resource /_server/client/unsendable', 'answer');
      for (const part of ['body', 'header', 'name', 'status']) {
        const { status, body } = await fixture.server.api('GET', `/_synapse/client/unsendable/${part}`);
        assert.deepEqual([part, status, body['error']], [part, 500, 'This resource failed to answer']);
      }
      assert.equal(
        await fixture.failures('web resource /_server/client/unsendable', 'answer'),
        failuresBefore + 4,
      );
    });

    it('passes a module the requests to its path on a single listener [option: listeners[].additional_resources.*.module, listeners[].additional_resources.*.config]', async () => {
      const answer = await fixture.server.api('GET', '/my/path/below');
      assert.deepEqual([answer.status, answer.raw], [200, '{"key":"resource","a":1}']);
      assert.equal((await fixture.server.api('GET', '/my/pathology')).status, 404);
      assert.equal((await fetch(`${otherListener}/my/path`)).status, 404);
      assert.equal((await fetch(`${otherListener}/_synapse/client/test`)).status, 202);
    });
  });
}

function registerResources(api: ModuleApi): void {
  api.registerWebResource('/_synapse/client/test', async ({ method, path, query, body, user }) => ({
    status: 202,
    headers: { 'x-test': 'yes' },
    body: {
      method,
      path,
      q: query.get('q'),
      body: Buffer.from(body).toString(),
      user: (await user())?.userId ?? null,
    },
  }));
  api.registerWebResource('/_synapse/client/broken', () => {
    throw new Error('broken on purpose');
  });
  const unsendable: Record<string, unknown> = {
    body: { body: { count: 1n } },
    header: { headers: { 'x-line': 'a\r\nx-other: b' } },
    name: { headers: { 'a b': 'x' } },
    status: { status: 99 },
  };
  api.registerWebResource('/_synapse/client/unsendable', ({ path }) => unsendable[path] as object);
}
