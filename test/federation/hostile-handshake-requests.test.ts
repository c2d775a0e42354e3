import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { getRoomVersion, type JsonObject } from '../../src/protocol/index.ts';
import {
  buildFromTemplate,
  graphReferences,
} from '../../src/room-federation/handshakes/templates/event-from-template.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { validateResponse } from '../support/matrix-spec/matrix-spec.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import { assertError, type PendingAnswer } from './pending-answer.ts';

const userId = '@mallory:evil.test';
const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('make and send requests of a hostile server', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    before(async () => {
      several = new SeveralServers(kind);
      const a = await several.homeserver('a.test');
      evil = await several.scripted('evil.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
    });

    /** Sends a request and validates the response against the specification. */
    async function request(method: string, path: string, body?: JsonObject): PendingAnswer {
      const answer = await evil.request('a.test', method, path, body);
      assert.deepEqual(validateResponse(method, path, answer.status, answer.body).problems, []);
      return answer;
    }
    const requestTemplate = (membership = 'join', user = userId, query = '?ver=11&ver=10') =>
      request('GET', `${v1}/make_${membership}/${enc(roomId)}/${enc(user)}${query}`);

    /** Builds a signed event of a user of the hostile server from a make_join template. */
    async function build(change: Partial<Parameters<typeof buildFromTemplate>[1]> = {}, key = evil.key) {
      const { body } = await requestTemplate();
      const version = getRoomVersion(String(body['room_version']))!;
      const required = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
      return buildFromTemplate(
        graphReferences(body['event'] as JsonObject, version),
        { ...required, content: { membership: 'join' }, ...change },
        version,
        {
          signer: { serverName: 'evil.test', key },
          clock: systemClock,
          randomness: systemRandomness,
        },
      ).event;
    }
    const sendMembership = (event: { eventId: string; pdu: JsonObject }, action = 'join', query = '') =>
      request(
        'PUT',
        `${action === 'knock' ? v1 : v2}/send_${action}/${enc(roomId)}/${enc(event.eventId)}${query}`,
        event.pdu,
      );
    const joinedMembers = async () =>
      Object.keys((await anna.do('GET', `/rooms/${enc(roomId)}/joined_members`))['joined'] as object);

    it('answers make requests only for users of the requesting server and in room versions that the requesting server supports', async () => {
      const { status, body } = await requestTemplate();
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body['room_version'], '11');
      await assertError(requestTemplate('join', anna.id), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate('leave', anna.id, ''), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate('join', '@x:third.test'), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate('join', 'mallory'), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate('join', userId, '?ver=9'), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await assertError(requestTemplate('join', userId, ''), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await assertError(requestTemplate('leave', userId, ''), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate('knock'), 403, 'M_FORBIDDEN');
      roomId = '!unknown:a.test';
      await assertError(requestTemplate(), 404, 'M_NOT_FOUND');
    });

    it('refuses make and send requests with 403 when the server ACL denies the server', async () => {
      const event = await build();
      await anna.setState(roomId, 'm.room.server_acl', { allow: ['*'], deny: ['evil.test'] });
      await assertError(requestTemplate(), 403, 'M_FORBIDDEN');
      await assertError(sendMembership(event), 403, 'M_FORBIDDEN');
      assert.deepEqual(await joinedMembers(), [anna.id]);
    });

    it('lets a user join with a valid event, and returns the full state', async () => {
      await anna.setState(roomId, 'm.room.topic', { topic: 'Truth' });
      const event = await build();
      const { status, body } = await sendMembership(event);
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body['members_omitted'], false);
      const types = (body['state'] as JsonObject[]).map(({ type }) => type);
      for (const type of ['m.room.create', 'm.room.member', 'm.room.topic']) assert.ok(types.includes(type));
      assert.ok((body['auth_chain'] as unknown[]).length >= 3);
      assert.deepEqual((await joinedMembers()).sort(), [anna.id, userId]);
      assert.equal((await sendMembership(event)).status, 200);
    });

    it('returns the state without members to a send_join with omit_members=true', async () => {
      await anna.setState(roomId, 'm.room.name', { name: 'Hall' });
      const { body } = await sendMembership(await build(), 'join', '?omit_members=true');
      assert.equal(body['members_omitted'], true);
      assert.deepEqual(body['servers_in_room'], ['a.test']);
      const types = (body['state'] as JsonObject[]).map(({ type }) => type);
      assert.ok(!types.includes('m.room.member'));
      assert.ok(types.includes('m.room.name'));
      // The auth chain contains the events that authorize the join, except for those in the state.
      const chain = (body['auth_chain'] as JsonObject[]).map(({ type }) => type);
      assert.deepEqual(chain, ['m.room.member']);
    });

    it('returns the memberships of the heroes to a send_join with omit_members=true when the room has no name', async () => {
      const { body } = await sendMembership(await build(), 'join', '?omit_members=true');
      const members = (body['state'] as JsonObject[]).filter(({ type }) => type === 'm.room.member');
      assert.deepEqual(
        members.map(({ state_key: key }) => key),
        [anna.id],
      );
    });

    it('refuses other events than joins in send_join, and events of users of other servers in send_join, send_knock and send_leave', async () => {
      const wrongEvents: [what: string, change: Parameters<typeof build>[0]][] = [
        ['another type', { type: 'm.room.topic', stateKey: '' }],
        ['another user', { stateKey: '@other:evil.test' }],
        ['another membership', { content: { membership: 'invite' } }],
        ['a leave', { content: { membership: 'leave' } }],
        ['another room', { roomId: '!other:a.test' }],
      ];
      for (const [what, change] of wrongEvents) {
        await assertError(sendMembership(await build(change)), 400, 'M_INVALID_PARAM', what);
      }
      for (const action of ['join', 'knock', 'leave']) {
        for (const sender of [anna.id, '@x:third.test']) {
          const foreign = await build({ sender, stateKey: sender, content: { membership: action } });
          await assertError(
            sendMembership(foreign, action),
            400,
            'M_INVALID_PARAM',
            `${action} of ${sender}`,
          );
        }
      }
      assert.deepEqual(await joinedMembers(), [anna.id]);
    });

    it('refuses forged and unsigned join, knock and leave events, and altered join events', async () => {
      const event = await build();
      const path = `${v2}/send_join/${enc(roomId)}/`;
      await assertError(request('PUT', `${path}$other`, event.pdu), 400, 'M_INVALID_PARAM');
      for (const action of ['join', 'knock', 'leave']) {
        const content = { membership: action };
        const forged = await build({ content }, newSigningKey('scripted'));
        await assertError(sendMembership(forged, action), 400, 'M_INVALID_PARAM', action);
        const { eventId, pdu } = await build({ content });
        const unsigned = { eventId, pdu: { ...pdu, signatures: {} } };
        await assertError(sendMembership(unsigned, action), 400, 'M_INVALID_PARAM', action);
      }
      const changed = { ...event, pdu: { ...event.pdu, content: { membership: 'join', displayname: 'x' } } };
      await assertError(sendMembership(changed), 400, 'M_INVALID_PARAM');
      await assertError(sendMembership({ ...event, pdu: { type: 'm.room.member' } }), 400, 'M_BAD_JSON');
      await assertError(sendMembership({ ...event, pdu: { ...event.pdu, depth: -5 } }), 400, 'M_BAD_JSON');
      assert.deepEqual(await joinedMembers(), [anna.id]);
    });

    it('answers 400 M_BAD_JSON to join, knock, leave and invite events that contain a float, in room version 11', async () => {
      for (const action of ['join', 'knock', 'leave']) {
        const { eventId, pdu } = await build({ content: { membership: action } });
        for (const change of [{ content: { membership: action, bad: 1.5 } }, { depth: 1.5 }, { more: 1.5 }]) {
          const event = { eventId, pdu: { ...pdu, ...change } };
          await assertError(
            sendMembership(event, action),
            400,
            'M_BAD_JSON',
            `${action} ${JSON.stringify(change)}`,
          );
        }
      }
      const inviteWithFloat = {
        type: 'm.room.member',
        room_id: roomId,
        sender: anna.id,
        state_key: userId,
        content: {
          membership: 'invite',
          third_party_invite: { display_name: 'x', signed: { mxid: userId, token: 't', bad: 1.5 } },
        },
      };
      const path = `${v1}/exchange_third_party_invite/${enc(roomId)}`;
      await assertError(request('PUT', path, inviteWithFloat), 400, 'M_BAD_JSON');
      assert.deepEqual(await joinedMembers(), [anna.id]);
    });

    it('refuses a join event with unknown prev_events', async () => {
      const { body } = await requestTemplate();
      const template = body['event'] as JsonObject;
      const withUnknownPrevEvent = { ...template, prev_events: [`$${'A'.repeat(43)}`] };
      const event = buildFromTemplate(
        graphReferences(withUnknownPrevEvent, getRoomVersion('11')!),
        {
          roomId,
          type: 'm.room.member',
          sender: userId,
          stateKey: userId,
          content: { membership: 'join' },
        },
        getRoomVersion('11')!,
        {
          signer: { serverName: 'evil.test', key: evil.key },
          clock: systemClock,
          randomness: systemRandomness,
        },
      ).event;
      await assertError(sendMembership(event), 400, 'M_INVALID_PARAM');
    });

    it('refuses join_authorised_via_users_server in a public room, and in a restricted room for a user who is in none of the allowed rooms', async () => {
      const content = { membership: 'join', join_authorised_via_users_server: anna.id };
      await assertError(sendMembership(await build({ content })), 403, 'M_FORBIDDEN');
      const event = await build({ content });
      const space = await anna.createRoom();
      const join_rules = { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: space }] };
      await anna.setState(roomId, 'm.room.join_rules', join_rules);
      await assertError(sendMembership(event), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate(), 403, 'M_FORBIDDEN');
      assert.deepEqual(await joinedMembers(), [anna.id]);
    });

    it('refuses a join after the user was banned, also with an event from before the ban', async () => {
      const event = await build();
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: userId });
      await assertError(sendMembership(event), 403, 'M_FORBIDDEN');
      await assertError(requestTemplate(), 403, 'M_FORBIDDEN');
    });
  });
});
