import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc } from '../support/users/test-client.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('federation_ip_range_blacklist beside ip_range_blacklist', () => {
    let several: SeveralServers;
    before(() => {
      several = new SeveralServers(kind);
    });
    after(() => several.stop());

    it('federation_ip_range_blacklist applies to federation requests in place of ip_range_blacklist and ip_range_whitelist, unless federation_ip_range_blacklist is null [option: federation_ip_range_blacklist]', async () => {
      const loopback = '127.0.0.0/8';
      const far = await several.homeserver('far.test');
      const anna = await far.registerClient('anna');
      const roomId = await anna.createRoom();
      const join = async (name: string, outbound: object) => {
        const server = await several.homeserver(name, { config: { outbound } });
        const user = await server.registerClient('ben');
        return (await user.call('POST', `/join/${enc(roomId)}`, {}, { via: 'far.test' })).status;
      };
      const open = { ip_range_blacklist: [loopback], ip_range_whitelist: [] };
      assert.equal(await join('open.test', { ...open, federation_ip_range_blacklist: [] }), 200);
      const shut = { ip_range_blacklist: [], ip_range_whitelist: [loopback] };
      assert.equal(await join('shut.test', { ...shut, federation_ip_range_blacklist: [loopback] }), 502);
      assert.equal(await join('usual.test', { ...shut, federation_ip_range_blacklist: null }), 200);
    });
  });
});
