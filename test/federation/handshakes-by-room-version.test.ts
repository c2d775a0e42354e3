import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { getRoomVersion, type JsonObject, receivePdu, roomVersions } from '../../src/protocol/index.ts';
import {
  buildFromTemplate,
  graphReferences,
} from '../../src/room-federation/handshakes/templates/event-from-template.ts';
import { eventually } from '../clients/eventually.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
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

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('handshakes by room version', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let d: ScriptedServer;
    let anna: TestClient;
    let ben: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], {
        ...withoutRetries,
        clock: unhurriedClock,
      });
      several = opened.several;
      [a, b] = opened.servers;
      d = await several.scripted('d.test');
      anna = await a.registerClient('anna');
      ben = await b.registerClient('ben');
    });
    after(() => several.stop());
    beforeEach(() => void d.receivedRequests.splice(0));

    const roomOf = (version: string, rule = 'public') =>
      anna.createRoom({
        preset: 'private_chat',
        room_version: version,
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: rule } }],
      });
    const membershipOf = async (roomId: string, userId: string) =>
      (await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(userId)}`))['membership'];
    const requestTemplate = (membership: string, roomId: string, query: string) =>
      d.request('a.test', 'GET', `${v1}/make_${membership}/${enc(roomId)}/${enc(dora)}${query}`);

    /**
     * Runs a make/send handshake in the room version that the template states.
     * @param query of the make request
     * @param prefix of the path of the send request
     * @returns the room version
     */
    async function completeHandshake(
      membership: string,
      roomId: string,
      query: string,
      prefix: string,
    ): Promise<string> {
      const { status, body } = await requestTemplate(membership, roomId, query);
      assert.equal(status, 200, JSON.stringify(body));
      const statedVersion = String(body['room_version']);
      const version = getRoomVersion(statedVersion)!;
      const template = body['event'] as JsonObject;
      assert.equal('event_id' in template, false);
      const required = { roomId, type: 'm.room.member', sender: dora, stateKey: dora };
      const content = template['content'] as JsonObject;
      const signer = { serverName: 'd.test', key: d.key };
      const deps = { signer, clock: systemClock, randomness: systemRandomness };
      const { eventId, pdu } = buildFromTemplate(
        graphReferences(template, version),
        { ...required, content },
        version,
        deps,
      ).event;
      const sent = await d.request(
        'a.test',
        'PUT',
        `${prefix}/send_${membership}/${enc(roomId)}/${enc(eventId)}`,
        pdu,
      );
      assert.equal(sent.status, 200, JSON.stringify(sent.body));
      assert.equal(await membershipOf(roomId, dora), membership);
      return statedVersion;
    }

    for (const version of versions) {
      it(`runs join, leave and knock handshakes in a room of version ${version}`, async () => {
        const roomId = await roomOf(version);
        const allVersions = `?ver=${versions.join('&ver=')}`;
        assert.equal(await completeHandshake('join', roomId, allVersions, v2), version);
        assert.equal(await completeHandshake('leave', roomId, '', v2), version);
        await anna.do('PUT', `/rooms/${enc(roomId)}/state/m.room.join_rules`, { join_rule: 'knock' });
        if (getRoomVersion(version)!.knock) {
          assert.equal(await completeHandshake('knock', roomId, allVersions, v1), version);
          assert.equal(await completeHandshake('leave', roomId, '', v1), version);
        } else {
          const { status, body } = await requestTemplate('knock', roomId, allVersions);
          assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
        }
      });

      it(`returns M_INCOMPATIBLE_ROOM_VERSION to servers that do not support version ${version}`, async () => {
        const roomId = await roomOf(version);
        const otherVersions = versions.filter((supported) => supported !== version);
        for (const membership of ['join', 'knock']) {
          const { status, body } = await requestTemplate(
            membership,
            roomId,
            `?ver=${otherVersions.join('&ver=')}`,
          );
          assert.deepEqual(
            [status, body['errcode'], body['room_version']],
            [400, 'M_INCOMPATIBLE_ROOM_VERSION', version],
          );
        }
        // A server that sends no `ver` supports version 1 only.
        const withoutVersions = await requestTemplate('join', roomId, '');
        assert.equal(withoutVersions.status, version === '1' ? 200 : 400);
        assert.equal((await requestTemplate('knock', roomId, '')).status, 400);
      });

      it(`lets a user reject an invite to a remote room of version ${version}`, async () => {
        const roomId = await roomOf(version, 'invite');
        await anna.do('POST', `/rooms/${enc(roomId)}/invite`, { user_id: ben.id });
        assert.ok((await ben.sync()).rooms?.invite?.[roomId]);
        await ben.leave(roomId);
        assert.equal(await membershipOf(roomId, ben.id), 'leave');
      });
    }

    it('accepts invites to rooms of the versions 1 and 2 by the v1 endpoint', async () => {
      for (const version of ['1', '2']) {
        const room = new SignedRoom(version, { serverName: 'd.test', key: d.key });
        const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
        const { eventId, pdu } = room.build({ ...draft, content: { membership: 'invite' } }).event;
        const path = `${v1}/invite/${enc(room.roomId)}/${enc(eventId)}`;
        const { status, body } = await d.request('a.test', 'PUT', path, pdu);
        assert.equal(status, 200, JSON.stringify(body));
        assert.ok((await anna.sync()).rooms?.invite?.[room.roomId]);
      }
    });

    describe('the room version that a remote event template states', () => {
      let room: SignedRoom;

      /** Sends Anna an invite that claims `claimedVersion` for a room of `version`. */
      const sendInvite = async (version: string, claimedVersion = version) => {
        room = new SignedRoom(version, { serverName: 'd.test', key: d.key });
        const claimedRoom = new SignedRoom(claimedVersion, { serverName: 'd.test', key: d.key });
        if (getRoomVersion(claimedVersion)!.roomId === 'origin') claimedRoom.roomId = room.roomId;
        const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
        const { eventId, pdu } = claimedRoom.build({ ...draft, content: { membership: 'invite' } }).event;
        const path = `${v2}/invite/${enc(room.roomId)}/${enc(eventId)}`;
        const body = { room_version: claimedVersion, event: pdu, invite_room_state: [] };
        const answer = await d.request('a.test', 'PUT', path, body);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      };
      const scriptHandshake = (membership: string, roomVersion: string | undefined) => {
        d.on(`GET ${v1}/make_${membership}/`, () => {
          const { room_version: _, ...template } = room.membershipTemplate(anna.id, membership);
          return { ...template, ...(roomVersion !== undefined && { room_version: roomVersion }) };
        });
        d.on(`PUT ${v2}/send_leave/`, () => ({}));
        d.on(`PUT ${v1}/send_knock/`, () => ({ knock_room_state: [] }));
      };
      const sent = (membership: string) =>
        d.receivedRequests
          .filter(({ path }) => path.includes(`/send_${membership}/`))
          .map(({ body }) => body);
      /** Waits for the send request of a handshake, because a job may send it only after the answer to the client. */
      const waitForSent = (membership: string) =>
        eventually(`a ${membership}`, () => {
          const bodies = sent(membership);
          return bodies.length > 0 && bodies;
        });
      const isInvited = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;

      for (const version of versions) {
        it(`signs a leave of room version ${version}, whether the template states the version or not`, async () => {
          for (const statedVersion of [version, undefined]) {
            if (statedVersion === undefined) d.receivedRequests.splice(0);
            // From room version 12 on, the room id is the hash of the create event, and an invite has to contain
            // this event in its stripped state.
            if (getRoomVersion(version)!.roomId !== 'origin') {
              room = new SignedRoom(version, { serverName: 'd.test', key: d.key });
              const draft = { type: 'm.room.member', sender: room.creator, stateKey: anna.id };
              const { eventId, pdu } = room.build({ ...draft, content: { membership: 'invite' } }).event;
              const state = [...room.state.values()].map(({ event }) => event.pdu);
              const path = `${v2}/invite/${enc(room.roomId)}/${enc(eventId)}`;
              const body = { room_version: version, event: pdu, invite_room_state: state };
              assert.equal((await d.request('a.test', 'PUT', path, body)).status, 200);
            } else await sendInvite(version);
            scriptHandshake('leave', statedVersion);
            await anna.leave(room.roomId);
            assert.equal(await isInvited(), false);
            const [leave, ...others] = await waitForSent('leave');
            assert.deepEqual(others, []);
            const { event, hashMatches } = receivePdu(leave!, room.version);
            assert.deepEqual([event.content['membership'], hashMatches], ['leave', true]);
          }
        });
      }

      it('signs a leave in the version of the template when an invite has claimed another one', async () => {
        await sendInvite('10', '1');
        scriptHandshake('leave', '10');
        await anna.leave(room.roomId);
        assert.equal(await isInvited(), false);
        const [leave] = await waitForSent('leave');
        assert.equal('event_id' in leave!, false, 'events of version 10 have no event_id');
        assert.equal(receivePdu(leave!, room.version).hashMatches, true);
      });

      it('signs no leave when the template states an unknown room version, and ends the invite locally', async () => {
        await sendInvite('10');
        scriptHandshake('leave', '99');
        await anna.leave(room.roomId);
        assert.deepEqual(sent('leave'), []);
        assert.equal(await isInvited(), false);
      });

      it('refuses to knock when the template states a version without knocks, or no version', async () => {
        room = new SignedRoom('10', { serverName: 'd.test', key: d.key });
        for (const statedVersion of ['6', undefined]) {
          scriptHandshake('knock', statedVersion);
          const { status } = await anna.call('POST', `/knock/${enc(room.roomId)}`, {}, { via: 'd.test' });
          assert.equal(status, 502);
        }
        assert.deepEqual(sent('knock'), []);
      });
    });
  });
});
