import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { getRoomVersion, type JsonObject } from '../../src/protocol/index.ts';
import {
  buildFromTemplate,
  graphReferences,
} from '../../src/room-federation/handshakes/templates/event-from-template.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';
const dora = '@dora:d.test';
const version = getRoomVersion('11')!;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('details of the join, knock and invite handshakes', () => {
    let several: SeveralServers;
    let d: ScriptedServer;
    let anna: TestClient;
    before(async () => {
      ({
        several,
        peer: d,
        anna,
      } = await SeveralServers.withScriptedServer(kind, 'd.test', { clock: unhurriedClock }));
    });
    after(() => several.stop());

    const restrictedTo = (space: string) => ({
      preset: 'private_chat',
      room_version: '11',
      initial_state: [
        {
          type: 'm.room.join_rules',
          content: { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: space }] },
        },
      ],
    });

    async function memberEventFor(membership: string, roomId: string) {
      const path = `${v1}/make_${membership}/${enc(roomId)}/${enc(dora)}?ver=${version.id}`;
      const { body } = await d.request('a.test', 'GET', path);
      const template = body['event'] as JsonObject;
      return buildFromTemplate(
        graphReferences(template, version),
        {
          roomId,
          type: 'm.room.member',
          sender: dora,
          stateKey: dora,
          content: template['content'] as JsonObject,
        },
        version,
        {
          signer: { serverName: 'd.test', key: d.key },
          clock: systemClock,
          randomness: systemRandomness,
        },
      ).event;
    }
    const sendJoin = (roomId: string, { eventId, pdu }: { eventId: string; pdu: JsonObject }) =>
      d.request('a.test', 'PUT', `${v2}/send_join/${enc(roomId)}/${enc(eventId)}`, pdu);

    it('answers a repeated send_join with the same signed event and state', async () => {
      const space = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      await ScriptedMember.join(d, 'a.test', space, dora);
      const roomId = await anna.createRoom(restrictedTo(space));
      const event = await memberEventFor('join', roomId);
      const first = await sendJoin(roomId, event);
      assert.equal(first.status, 200, JSON.stringify(first.body));
      const { signatures } = first.body['event'] as JsonObject;
      assert.deepEqual(Object.keys(signatures as JsonObject).sort(), ['a.test', 'd.test']);
      const repeated = await sendJoin(roomId, event);
      assert.equal(repeated.status, 200, JSON.stringify(repeated.body));
      assert.deepEqual(repeated.body['event'], first.body['event']);
      assert.deepEqual(repeated.body['state'], first.body['state']);
    });

    it('refuses a repeated send_join after the user was banned', async () => {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      const event = await memberEventFor('join', roomId);
      assert.equal((await sendJoin(roomId, event)).status, 200);
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: dora });
      const { status, body } = await sendJoin(roomId, event);
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('refuses a repeated send_knock after the user was banned', async () => {
      const roomId = await anna.createRoom({
        preset: 'private_chat',
        room_version: '11',
        name: 'Before',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
      });
      const event = await memberEventFor('knock', roomId);
      const knock = () =>
        d.request('a.test', 'PUT', `${v1}/send_knock/${enc(roomId)}/${enc(event.eventId)}`, event.pdu);
      for (const answer of [await knock(), await knock()]) assert.equal(answer.status, 200);
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: dora });
      await anna.setState(roomId, 'm.room.name', { name: 'After' });
      const { status, body } = await knock();
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
    });

    it('joins a room although its state has an unsigned event, and drops that event and the events that refer to it', async () => {
      const room = new SignedRoom('11', { serverName: 'd.test', key: d.key });
      room.setState('m.room.member', { membership: 'join' }, dora, dora);
      room.setState('m.room.topic', { topic: 'by Dora' }, '', dora);
      const withoutSignatureOfDora = ({ signatures, ...pdu }: JsonObject) =>
        pdu['state_key'] === dora ? { ...pdu, signatures: {} } : { ...pdu, signatures };
      d.on(`GET ${v1}/make_join/`, () => room.membershipTemplate(anna.id, 'join'));
      d.on(`PUT ${v2}/send_join/`, () => {
        const { state, auth_chain: chain } = room.stateAndAuthChain();
        return {
          state: state.map(withoutSignatureOfDora),
          auth_chain: chain.map(withoutSignatureOfDora),
        } as JsonObject;
      });
      const path = `/join/${enc(room.roomId)}`;
      const { status, raw } = await anna.call('POST', path, {}, { server_name: 'd.test' });
      assert.equal(status, 200, raw);
      const state = (await anna.do('GET', `/rooms/${enc(room.roomId)}/members`))['chunk'] as JsonObject[];
      assert.deepEqual(state.map((event) => event['state_key']).sort(), [anna.id, room.creator].sort());
      assert.equal((await anna.call('GET', `/rooms/${enc(room.roomId)}/state/m.room.topic`)).status, 404);
    });

    it('returns an invite unchanged except for the added signature of this server', async () => {
      const room = new SignedRoom('1', { serverName: 'd.test', key: d.key });
      const { event } = room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: anna.id,
        content: { membership: 'invite' },
      });
      const unsigned = { invite_room_state: room.stateAndAuthChain().state, 'org.example': 1 };
      const sent: JsonObject = { ...event.pdu, unsigned };
      const path = `invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const answerOfV1 = await d.request('a.test', 'PUT', `${v1}/${path}`, sent);
      const { body } = await d.request('a.test', 'PUT', `${v2}/${path}`, { room_version: '1', event: sent });
      for (const answer of [(answerOfV1.body as unknown as [number, JsonObject])[1], body]) {
        const { signatures, ...rest } = answer['event'] as JsonObject;
        const { signatures: before, ...expected } = sent;
        assert.deepEqual(rest, expected);
        assert.deepEqual((signatures as JsonObject)['d.test'], (before as JsonObject)['d.test']);
        assert.ok((signatures as JsonObject)['a.test']);
      }
    });

    it('puts the name of this server as origin into the events of join, leave, knock and invite handshakes', async () => {
      const room = new SignedRoom('11', { serverName: 'd.test', key: d.key });
      const bodies: JsonObject[] = [];
      const record = (body: JsonObject, answer: JsonObject | ReturnType<SignedRoom['stateAndAuthChain']>) => {
        bodies.push(body);
        return answer as JsonObject;
      };
      d.on(`GET ${v1}/make_`, ({ path }) =>
        room.membershipTemplate(anna.id, path.split('/')[4]!.slice('make_'.length)),
      );
      d.on(`PUT ${v2}/send_join/`, ({ body }) => record(body, room.stateAndAuthChain()));
      d.on(`PUT ${v2}/send_leave/`, ({ body }) => record(body, {}));
      d.on(`PUT ${v1}/send_knock/`, ({ body }) =>
        record(body, { knock_room_state: room.stateAndAuthChain().state }),
      );
      await anna.do('POST', `/knock/${enc(room.roomId)}`, {}, { server_name: 'd.test' });
      await anna.leave(room.roomId);
      await anna.do('POST', `/join/${enc(room.roomId)}`, {}, { server_name: 'd.test' });
      const roomId = await anna.createRoom();
      d.on(`PUT ${v2}/invite/`, ({ body }) => {
        bodies.push(body['event'] as JsonObject);
        return [403, { errcode: 'M_FORBIDDEN', error: 'No' }];
      });
      await anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: dora });
      const sentOrigins = bodies.map(({ content, origin }) => [
        (content as JsonObject)['membership'],
        origin,
      ]);
      assert.deepEqual(sentOrigins, [
        ['knock', 'a.test'],
        ['leave', 'a.test'],
        ['join', 'a.test'],
        ['invite', 'a.test'],
      ]);
    });
  });
});
