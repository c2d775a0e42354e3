import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { getRoomVersion, type JsonObject, receivePdu, roomVersions } from '../../src/protocol/index.ts';
import { eventAt, placeIn } from '../../src/room-federation/handshakes/templates/event-from-template.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import {
  type FederatedServer,
  SeveralServers,
  withoutRetries,
} from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';
const dora = '@dora:d.test';
const versions = [...roomVersions.keys()];

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('handshakes about rooms of all versions', () => {
    let several: SeveralServers;
    let [a, b]: FederatedServer[] = [];
    let d: ScriptedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], withoutRetries);
      several = opened.several;
      [a, b] = opened.servers;
      d = await several.scripted('d.test');
      anna = await a!.registerClient('anna');
      ben = await b!.registerClient('ben');
    });
    after(() => several.stop());
    beforeEach(() => void d.asked.splice(0));

    const roomOf = (version: string, rule = 'public') =>
      anna.createRoom({
        preset: 'private_chat',
        room_version: version,
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: rule } }],
      });
    const memberOf = async (roomId: string, userId: string) =>
      (await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(userId)}`))['membership'];
    const make = (membership: string, roomId: string, query: string) =>
      d.ask('a.test', 'GET', `${v1}/make_${membership}/${enc(roomId)}/${enc(dora)}${query}`);

    /** Asks for a template, completes it by the version that it states, and hands it in. */
    async function become(membership: string, roomId: string, query: string, path: string): Promise<string> {
      const { status, body } = await make(membership, roomId, query);
      assert.equal(status, 200, JSON.stringify(body));
      const stated = String(body['room_version']);
      const version = getRoomVersion(stated)!;
      const template = body['event'] as JsonObject;
      assert.equal('event_id' in template, false);
      const own = { roomId, type: 'm.room.member', sender: dora, stateKey: dora };
      const content = template['content'] as JsonObject;
      const signer = { serverName: 'd.test', key: d.key };
      const parts = { signer, clock: systemClock, randomness: systemRandomness };
      const { eventId, pdu } = eventAt(placeIn(template, version), { ...own, content }, version, parts).event;
      const sent = await d.ask(
        'a.test',
        'PUT',
        `${path}/send_${membership}/${enc(roomId)}/${enc(eventId)}`,
        pdu,
      );
      assert.equal(sent.status, 200, JSON.stringify(sent.body));
      assert.equal(await memberOf(roomId, dora), membership);
      return stated;
    }

    for (const version of versions) {
      it(`templates of version ${version} say so, and what is made of them is taken`, async () => {
        const roomId = await roomOf(version);
        const all = `?${versions.map((one) => `ver=${one}`).join('&')}`;
        assert.equal(await become('join', roomId, all, v2), version);
        assert.equal(await become('leave', roomId, '', v2), version);
        await anna.do('PUT', `/rooms/${enc(roomId)}/state/m.room.join_rules`, { join_rule: 'knock' });
        if (getRoomVersion(version)!.knock) {
          assert.equal(await become('knock', roomId, all, v1), version);
          assert.equal(await become('leave', roomId, '', v1), version);
        } else {
          const { status, body } = await make('knock', roomId, all);
          assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
        }
      });

      it(`servers that do not know version ${version} get no template`, async () => {
        const roomId = await roomOf(version);
        const others = versions.filter((one) => one !== version);
        for (const membership of ['join', 'knock']) {
          const { status, body } = await make(membership, roomId, `?ver=${others.join('&ver=')}`);
          assert.deepEqual(
            [status, body['errcode'], body['room_version']],
            [400, 'M_INCOMPATIBLE_ROOM_VERSION', version],
          );
        }
        // Who does not say which versions they know, knows the first one.
        const silent = await make('join', roomId, '');
        assert.equal(silent.status, version === '1' ? 200 : 400);
        assert.equal((await make('knock', roomId, '')).status, 400);
      });

      it(`an invite to a room of version ${version} is turned down there, too`, async () => {
        const roomId = await roomOf(version, 'invite');
        await anna.do('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
        assert.ok((await ben.sync()).rooms?.invite?.[roomId]);
        await ben.leave(roomId);
        assert.equal(await memberOf(roomId, ben.id), 'leave');
      });
    }

    describe('and what their templates state', () => {
      let room: SignedRoom;

      /** Anna is invited, as `named` says, to a room of that version. */
      const invited = async (version: string, named = version) => {
        room = new SignedRoom(version, { serverName: 'd.test', key: d.key });
        const asNamed = new SignedRoom(named, { serverName: 'd.test', key: d.key });
        if (getRoomVersion(named)!.roomId === 'origin') asNamed.roomId = room.roomId;
        const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
        const { eventId, pdu } = asNamed.build({ ...draft, content: { membership: 'invite' } }).event;
        const path = `${v2}/invite/${enc(room.roomId)}/${enc(eventId)}`;
        const body = { room_version: named, event: pdu, invite_room_state: [] };
        const answer = await d.ask('a.test', 'PUT', path, body);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      };
      const states = (membership: string, roomVersion: string | undefined) => {
        d.on(`GET ${v1}/make_${membership}/`, () => {
          const { room_version: _, ...template } = room.membershipTemplate(anna.id, membership);
          return { ...template, ...(roomVersion !== undefined && { room_version: roomVersion }) };
        });
        d.on(`PUT ${v2}/send_leave/`, () => ({}));
        d.on(`PUT ${v1}/send_knock/`, () => ({ knock_room_state: [] }));
      };
      const sent = (membership: string) =>
        d.asked.filter(({ path }) => path.includes(`/send_${membership}/`)).map(({ body }) => body);
      const isInvited = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;

      for (const version of versions) {
        it(`a leave is of version ${version}, said or not`, async () => {
          for (const stated of [version, undefined]) {
            if (stated === undefined) d.asked.splice(0);
            // The ids of rooms since version 12 are hashes: only their own rooms have them.
            if (getRoomVersion(version)!.roomId !== 'origin') {
              room = new SignedRoom(version, { serverName: 'd.test', key: d.key });
              const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
              const { eventId, pdu } = room.build({ ...draft, content: { membership: 'invite' } }).event;
              const state = [...room.state.values()].map(({ event }) => event.pdu);
              const path = `${v2}/invite/${enc(room.roomId)}/${enc(eventId)}`;
              const body = { room_version: version, event: pdu, invite_room_state: state };
              assert.equal((await d.ask('a.test', 'PUT', path, body)).status, 200);
            } else await invited(version);
            states('leave', stated);
            await anna.leave(room.roomId);
            assert.equal(await isInvited(), false);
            const [leave, ...others] = sent('leave');
            assert.ok(leave);
            assert.deepEqual(others, []);
            const { event, hashMatches } = receivePdu(leave, room.version);
            assert.deepEqual([event.content['membership'], hashMatches], ['leave', true]);
          }
        });
      }

      it('a leave is made by it, when an invite has named another version', async () => {
        await invited('10', '1');
        states('leave', '10');
        await anna.leave(room.roomId);
        assert.equal(await isInvited(), false);
        const [leave] = sent('leave');
        assert.ok(leave);
        assert.equal('event_id' in leave, false, 'events of version 10 have none');
        assert.equal(receivePdu(leave, room.version).hashMatches, true);
      });

      it('nothing is signed by a version that nobody knows, and the invite is gone', async () => {
        await invited('10');
        states('leave', '99');
        await anna.leave(room.roomId);
        assert.deepEqual(sent('leave'), []);
        assert.equal(await isInvited(), false);
      });

      it('nobody knocks by a version that knows no knocks', async () => {
        room = new SignedRoom('10', { serverName: 'd.test', key: d.key });
        for (const stated of ['6', undefined]) {
          states('knock', stated);
          const { status } = await anna.call('POST', `/knock/${enc(room.roomId)}`, {}, { via: 'd.test' });
          assert.equal(status, 502);
        }
        assert.deepEqual(sent('knock'), []);
      });

      it('an invite that names no version is to a room of the first or the second', async () => {
        for (const version of ['1', '2']) {
          await invited(version);
          const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
          const { eventId, pdu } = room.build({ ...draft, content: { membership: 'invite' } }).event;
          const path = `${v1}/invite/${enc(room.roomId)}/${enc(eventId)}`;
          const { status, body } = await d.ask('a.test', 'PUT', path, pdu);
          assert.equal(status, 200, JSON.stringify(body));
        }
      });
    });
  });
});
