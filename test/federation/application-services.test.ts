import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverDatabases } from '../support/databases/databases.ts';
import { ApplicationService } from '../support/other-servers/application-service.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

for (const database of serverDatabases(import.meta.url)) {
  describe(`application services and other servers, on ${database}`, () => {
    let irc: ApplicationService;
    let several: SeveralServers;
    let bridged: FederatedServer;
    let anna: TestClient;
    before(async () => {
      irc = await ApplicationService.start('irc');
      several = new SeveralServers(database);
      bridged = await several.homeserver('bridged.test', {
        config: { appservices: { app_service_config_files: [irc.file] } },
      });
      const far = await several.homeserver('far.test');
      anna = await far.registerClient('anna');
    });
    after(async () => {
      await several.stop();
      await irc.stop();
    });

    const call = async (method: string, path: string, body: object, userId?: string) => {
      const query = userId === undefined ? {} : { user_id: userId };
      const answer = await bridged.api(method, `/_matrix/client/v3${path}`, {
        token: irc.token,
        query,
        body,
      });
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    };
    const register = async (name: string) => {
      const body = { type: 'm.login.application_service', username: `irc_${name}`, inhibit_login: true };
      await call('POST', '/register', body);
      return `@irc_${name}:bridged.test`;
    };
    const join = (userId: string, roomId: string) =>
      call('POST', `/join/${enc(roomId)}?via=far.test`, {}, userId);
    const texts = () =>
      irc.events.flatMap(({ type, content }) => (type === 'm.room.message' ? [content.body] : []));

    it('asks a service for an alias or a user that another server requests and that does not exist', async () => {
      irc.respond = async ({ path }) => {
        if (path.includes('/rooms/'))
          await call('POST', '/createRoom', { room_alias_name: 'irc_tea', preset: 'public_chat' });
        if (path.includes('/users/')) await register('una');
        return { status: 200, body: {} };
      };
      await anna.do('POST', `/join/${enc('#irc_tea:bridged.test')}`, {});
      assert.deepEqual(await anna.do('GET', `/profile/${enc('@irc_una:bridged.test')}`), {
        displayname: 'irc_una',
      });
      irc.respond = () => undefined;
    });

    it('lets users of a service join public and restricted rooms of another server, whose events the service receives', async () => {
      const user = await register('vic');
      const open = await anna.createRoom({ preset: 'public_chat' });
      const members = await anna.createRoom({
        initial_state: [
          {
            type: 'm.room.join_rules',
            state_key: '',
            content: { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: open }] },
          },
        ],
      });
      for (const roomId of [open, members]) {
        await join(user, roomId);
        await anna.say(roomId, `welcome to ${roomId}`);
        await irc.until(() => texts().includes(`welcome to ${roomId}`));
      }
    });

    it('sends an invite by a user of another server to the service, and asks it for the invited user, who does not exist', async () => {
      irc.respond = async ({ path }) => {
        if (path.includes('/users/')) await register('wes');
        return { status: 200, body: {} };
      };
      const user = '@irc_wes:bridged.test';
      const roomId = await anna.createRoom({ invite: [user] });
      await irc.until(() =>
        irc.requests.some(({ path }) => path.endsWith(`/users/${encodeURIComponent(user)}`)),
      );
      await irc.until(() => irc.events.some(({ state_key }) => state_key === user));
      const invite = irc.events.find(({ state_key }) => state_key === user);
      assert.deepEqual([invite.room_id, invite.content.membership], [roomId, 'invite']);
      irc.respond = () => undefined;
      await join(user, roomId);
      await anna.say(roomId, 'hello Wes');
      await irc.until(() => texts().includes('hello Wes'));
    });
  });
}
