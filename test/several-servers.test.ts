import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { type FederatedServer, SeveralServers } from './support/other-servers/several-servers.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('servers of a test network', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test']);
      several = opened.several;
      [a] = opened.servers;
    });
    after(() => several.stop());

    it('sends signed requests between servers of a test network by server name over TLS', async () => {
      const path = '/_matrix/key/v2/query/b.test';
      const c = await several.scripted('c.test');
      const answer = await c.request('a.test', 'GET', path);
      assert.equal(answer.status, 200);
      const [keys] = answer.body['server_keys'] as [{ server_name: string }];
      assert.equal(keys.server_name, 'b.test');
    });

    it('reaches a server of a test network after a restart, but not while it is cut off', async () => {
      await a.restart();
      const c = await several.scripted('d.test');
      assert.equal((await c.request('a.test', 'GET', '/_matrix/federation/v1/version')).status, 200);
      a.disconnect();
      await assert.rejects(c.request('a.test', 'GET', '/_matrix/federation/v1/version'));
      a.reconnect();
      assert.equal((await c.request('a.test', 'GET', '/_matrix/federation/v1/version')).status, 200);
    });
  });
});
