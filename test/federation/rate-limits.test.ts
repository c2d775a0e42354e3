import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the rate limit of requests of other servers', () => {
    let several: SeveralServers;
    before(() => {
      several = new SeveralServers(kind);
    });
    after(() => several.stop());

    it('counts all requests of one server against one limit, and those of other servers separately [option: rc_federation.sleep_limit, rc_federation.reject_limit]', async () => {
      const limits = { window_size: 60_000, sleep_limit: 2, sleep_delay: 1, reject_limit: 0, concurrent: 5 };
      const a = await several.homeserver('a.test', { config: { rateLimits: { rc_federation: limits } } });
      const b = await several.scripted('b.test');
      const profile = '/_matrix/federation/v1/query/profile?user_id=@x:a.test';
      const directory = '/_matrix/federation/v1/query/directory?room_alias=%23x:a.test';
      const request = (path: string) => b.request(a.name, 'GET', path);
      assert.deepEqual([(await request(profile)).status, (await request(directory)).status], [404, 404]);
      const refused = await request(profile);
      assert.deepEqual([refused.status, refused.body['errcode']], [429, 'M_LIMIT_EXCEEDED']);
      const otherServer = await several.scripted('c.test');
      assert.equal((await otherServer.request(a.name, 'GET', profile)).status, 404);
    });
  });
});
