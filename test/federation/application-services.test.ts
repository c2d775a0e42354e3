import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { within } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { ApplicationService } from '../support/other-servers/application-service.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import { ScriptedResident } from '../support/other-servers/scripted-resident.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

for (const database of selectedDatabases(import.meta.url)) {
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

    it('asks a service about an alias or a user that does not exist when another server requests it', async () => {
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

    it('lets users of a service join public and restricted rooms of another server, and sends the events of these rooms to the service', async () => {
      const user = await register('vic');
      const publicRoom = await anna.createRoom({ preset: 'public_chat' });
      const restrictedRoom = await anna.createRoom({
        initial_state: [
          {
            type: 'm.room.join_rules',
            state_key: '',
            content: { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: publicRoom }] },
          },
        ],
      });
      for (const roomId of [publicRoom, restrictedRoom]) {
        await join(user, roomId);
        await anna.say(roomId, `welcome to ${roomId}`);
        await irc.until(() => texts().includes(`welcome to ${roomId}`));
      }
    });

    it('lets users of a service join a room whose members are not known yet, and sends the events of the room to the service before and after its members are known', async () => {
      const resident = new ScriptedResident(await several.scripted('resident.test'), 'bridged.test');
      const { roomId, creator } = resident.room;
      const charlie = '@charlie:resident.test';
      resident.setState('m.room.member', { membership: 'join' }, charlie, charlie);
      const release = resident.holdState();
      const [xia, yan] = [await register('xia'), await register('yan')];
      for (const user of [xia, yan]) await call('POST', `/join/${enc(roomId)}?via=resident.test`, {}, user);
      await resident.send(resident.say('members unknown', charlie));
      await irc.until(() => texts().includes('members unknown'));
      release();
      const members = await bridged.api('GET', `/_matrix/client/v3/rooms/${enc(roomId)}/joined_members`, {
        token: irc.token,
        query: { user_id: xia },
      });
      assert.deepEqual(
        Object.keys(members.body['joined'] as object).sort(),
        [charlie, creator, xia, yan].sort(),
      );
      await resident.send(resident.say('members known', charlie));
      await irc.until(() => texts().includes('members known'));
      assert.deepEqual(
        texts().filter((text) => text.startsWith('members ')),
        ['members unknown', 'members known'],
      );
    });

    it('sends redactions of another server to the service only when they take effect', async () => {
      const user = await register('zoe');
      const room = await call('POST', '/createRoom', { preset: 'public_chat', room_version: '11' }, user);
      const roomId = String(room['room_id']);
      const content = { msgtype: 'm.text', body: 'the target' };
      const sent = await call('PUT', `/rooms/${enc(roomId)}/send/m.room.message/1`, content, user);
      const evil = await several.scripted('evil.test');
      const remote = await ScriptedMember.join(evil, 'bridged.test', roomId, '@mallory:evil.test');
      const redact = async (redacts: string) => {
        const redaction = remote.build({ type: 'm.room.redaction', content: {} }, { redacts });
        await remote.send(redaction.event.pdu);
        remote.advanceTo(redaction);
        return redaction.event.eventId;
      };
      await redact(String(sent['event_id']));
      const allowed = await redact(await remote.say('redacted by its sender'));
      await remote.say('after both redactions');
      await irc.until(() => texts().includes('after both redactions'));
      const redactions = irc.events.filter(({ type }) => type === 'm.room.redaction');
      assert.deepEqual(
        redactions.map(({ event_id }) => event_id),
        [allowed],
      );
    });

    it('sends an invite by a user of another server to the service, and asks the service about the invited user, who does not exist', async () => {
      const registered = Promise.withResolvers<string>();
      const user = '@irc_wes:bridged.test';
      irc.respond = async ({ path }) => {
        if (path.endsWith(`/users/${encodeURIComponent(user)}`)) registered.resolve(await register('wes'));
        return { status: 200, body: {} };
      };
      const roomId = await anna.createRoom({ invite: [user] });
      assert.equal(await within('the request for the invited user', registered.promise), user);
      await irc.until(() => irc.events.some(({ state_key }) => state_key === user));
      const invite = irc.events.find(({ state_key }) => state_key === user);
      assert.deepEqual([invite.room_id, invite.content.membership], [roomId, 'invite']);
      const inviteStateTypes = invite.unsigned.invite_room_state.map(({ type }: { type: string }) => type);
      assert.ok(
        inviteStateTypes.includes('m.room.create') && inviteStateTypes.includes('m.room.join_rules'),
        inviteStateTypes,
      );
      irc.respond = () => undefined;
      await join(user, roomId);
      await anna.say(roomId, 'hello Wes');
      await irc.until(() => texts().includes('hello Wes'));
    });
  });
}
