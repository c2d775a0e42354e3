import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { serviceSecret as secret } from '../../../test/support/other-servers/authentication-service.ts';
import type { TestServer } from '../../../test/support/servers/server.ts';
import { DelegatingServer } from '../test/delegating-server.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('the endpoints for an authentication service', () => {
    let hearth: DelegatingServer;
    let server: TestServer;
    before(async () => {
      hearth = await DelegatingServer.start(open.kind);
      ({ server } = hearth);
    });
    after(() => hearth.stop());

    const provision: DelegatingServer['provision'] = (...request) => hearth.provision(...request);
    const whoami = (token: string) => hearth.whoami(token);
    const newUser = (scope?: string) => hearth.newUser(scope);

    it('answers 403 M_FORBIDDEN to requests of the authentication service without the shared secret', async () => {
      const { token, localpart } = await newUser('urn:synapse:admin:*');
      for (const wrong of [token, '', 'the-shared-secre']) {
        const answer = await provision('GET', `query_user?localpart=${localpart}`, undefined, wrong);
        assert.deepEqual([answer.status, answer.body['errcode']], [403, 'M_FORBIDDEN']);
      }
      assert.deepEqual(await whoami(secret), [401, 'M_UNKNOWN_TOKEN']);
    });

    it('creates, changes and describes users for the authentication service', async () => {
      const localpart = 'provisioned';
      const availability = () => provision('GET', `is_localpart_available?localpart=${localpart}`);
      assert.equal((await availability()).status, 200);
      const created = await provision('POST', 'provision_user', {
        localpart,
        set_displayname: 'Provisioned',
        set_emails: ['a@example.org'],
      });
      assert.equal(created.status, 201);
      const taken = await availability();
      assert.deepEqual([taken.status, taken.body['errcode']], [400, 'M_USER_IN_USE']);
      const query = async () => (await provision('GET', `query_user?localpart=${localpart}`)).body;
      assert.deepEqual(await query(), {
        user_id: '@provisioned:test',
        display_name: 'Provisioned',
        avatar_url: null,
        is_suspended: false,
        is_deactivated: false,
      });
      await provision('POST', 'set_displayname', { localpart, displayname: 'Changed' });
      assert.equal((await query())['display_name'], 'Changed');
      await provision('POST', 'unset_displayname', { localpart });
      assert.equal((await query())['display_name'], null);
      const set = { localpart, set_displayname: 'Again', set_emails: ['b@example.org'] };
      assert.equal((await provision('POST', 'provision_user', set)).status, 200);
      const avatar = { localpart, set_avatar_url: 'mxc://test/picture', unset_displayname: true };
      await provision('POST', 'provision_user', avatar);
      assert.deepEqual(
        [(await query())['display_name'], (await query())['avatar_url']],
        [null, 'mxc://test/picture'],
      );
      const contradictory = await provision('POST', 'provision_user', { ...set, unset_emails: true });
      assert.deepEqual([contradictory.status, contradictory.body['errcode']], [400, 'M_INVALID_PARAM']);
      await provision('POST', 'delete_user', { localpart, erase: true });
      assert.equal((await query())['is_deactivated'], true);
      await provision('POST', 'reactivate_user', { localpart });
      assert.equal((await query())['is_deactivated'], false);
      const unknown = await provision('GET', 'query_user?localpart=unknown');
      assert.deepEqual([unknown.status, unknown.body['errcode']], [404, 'M_NOT_FOUND']);
    });

    it('replaces the mail addresses of a user for the authentication service', async () => {
      const { localpart, token } = await newUser();
      const addresses = async () => {
        const { body } = await server.api('GET', '/_matrix/client/v3/account/3pid', { token });
        return (body['threepids'] as { address: string }[]).map(({ address }) => address).sort();
      };
      await provision('POST', 'provision_user', {
        localpart,
        set_emails: ['c@example.org', 'D@example.org'],
      });
      assert.deepEqual(await addresses(), ['c@example.org', 'd@example.org']);
      await provision('POST', 'provision_user', { localpart, set_emails: ['d@example.org'] });
      assert.deepEqual(await addresses(), ['d@example.org']);
      await provision('POST', 'provision_user', { localpart, unset_emails: true });
      assert.deepEqual(await addresses(), []);
    });

    it('creates, renames, deletes and synchronizes devices for the authentication service', async () => {
      const { localpart, token } = await newUser();
      const devices = async () => {
        const { body } = await server.api('GET', '/_matrix/client/v3/devices', { token });
        return (body['devices'] as { device_id: string; display_name: string | null }[]).map(
          ({ device_id, display_name }) => [device_id, display_name],
        );
      };
      const device = { localpart, device_id: 'TABLET' };
      assert.equal((await provision('POST', 'upsert_device', device)).status, 201);
      assert.equal((await provision('POST', 'upsert_device', device)).status, 200);
      await provision('POST', 'update_device_display_name', { ...device, display_name: 'Tablet' });
      assert.deepEqual(await devices(), [
        ['PHONE', 'Phone'],
        ['TABLET', 'Tablet'],
      ]);
      await provision('POST', 'sync_devices', { localpart, devices: ['PHONE', 'NEW'] });
      assert.deepEqual(await devices(), [
        ['NEW', null],
        ['PHONE', 'Phone'],
      ]);
    });

    it('creates more devices than one transaction takes when the authentication service synchronizes them', async () => {
      const { localpart, token } = await newUser();
      const ids = Array.from({ length: 2_001 }, (_, index) => `DEVICE${index}`);
      const answer = await provision('POST', 'sync_devices', { localpart, devices: ['PHONE', ...ids] });
      assert.equal(answer.status, 200, answer.raw);
      const { body } = await server.api('GET', '/_matrix/client/v3/devices', { token });
      assert.equal((body['devices'] as unknown[]).length, 2_002);
    });
  });
});
