import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type { ScriptedAnswer } from '../support/other-servers/scripted-server.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc } from '../support/users/test-client.ts';
import { falseTemplates } from './false-event-templates.ts';
import { HostileServer } from './hostile-server.ts';

const makeJoin = 'GET /_matrix/federation/v1/make_join/';
const sendJoin = 'PUT /_matrix/federation/v2/send_join/';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a join through a hostile server', () => {
    const hostile = new HostileServer(kind);
    beforeEach(() => {
      hostile.evil.on(makeJoin, () => hostile.room.membershipTemplate(hostile.anna.id, 'join'));
      hostile.evil.on(sendJoin, () => ({ ...hostile.room.stateAndAuthChain() }));
    });

    const join = () =>
      hostile.anna.call('POST', `/join/${enc(hostile.room.roomId)}`, {}, { via: 'evil.test' });
    const sendJoinRequests = () =>
      hostile.evil.receivedRequests.filter(({ path }) => path.includes('/send_join/'));
    const wasSent = () => sendJoinRequests().length > 0;
    async function assertJoinFails(status = 502, errcode = 'M_UNKNOWN') {
      const answer = await join();
      assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], answer.raw);
      const { rooms } = await hostile.anna.sync();
      assert.equal(rooms?.join?.[hostile.room.roomId], undefined);
      const { joined_rooms: joined } = await hostile.anna.do('GET', '/joined_rooms');
      assert.ok(!(joined as string[]).includes(hostile.room.roomId));
    }

    it('joins when the server answers correctly', async () => {
      const { status, raw } = await join();
      assert.equal(status, 200, raw);
      const sent = sendJoinRequests()[0]!.body;
      assert.deepEqual(
        [sent['type'], sent['sender'], sent['state_key'], sent['room_id']],
        ['m.room.member', hostile.anna.id, hostile.anna.id, hostile.room.roomId],
      );
      assert.equal((sent['content'] as JsonObject)['membership'], 'join');
    });

    const wrongTemplates: [what: string, change: (event: JsonObject) => JsonObject, more?: JsonObject][] = [
      ...falseTemplates,
      ['with another membership', (event) => ({ ...event, content: { membership: 'ban' } })],
      ['without prev_events', ({ prev_events: _prev, ...event }) => event],
      ['of an unknown room version', (event) => event, { room_version: '99' }],
    ];
    for (const [what, change, more] of wrongTemplates) {
      it(`signs no event from a make_join template ${what}`, async () => {
        hostile.evil.on(makeJoin, () => {
          const template = hostile.room.membershipTemplate(hostile.anna.id, 'join');
          return { ...template, event: change(template['event'] as JsonObject), ...more };
        });
        await assertJoinFails();
        assert.equal(wasSent(), false);
      });
    }

    it('signs a join without the additional content of a make_join template', async () => {
      hostile.evil.on(makeJoin, () =>
        hostile.room.membershipTemplate(hostile.anna.id, 'join', { displayname: 'Fool', evil: true }),
      );
      assert.equal((await join()).status, 200);
      const { content } = sendJoinRequests()[0]!.body;
      assert.deepEqual(content, { membership: 'join', displayname: 'anna' });
    });

    const answers: [what: string, answer: () => ScriptedAnswer][] = [
      ['without a create event', () => ({ ...hostile.room.stateAndAuthChain(), state: [] })],
      [
        'with a state that was signed by another key',
        () =>
          new SignedRoom('11', {
            serverName: 'evil.test',
            key: newSigningKey('scripted'),
          }).stateAndAuthChain(),
      ],
      [
        'with the state of another room',
        () => new SignedRoom('11', { serverName: 'evil.test', key: hostile.evil.key }).stateAndAuthChain(),
      ],
      [
        'with an event of another room in the auth chain',
        () => {
          const otherRoom = new SignedRoom('11', { serverName: 'evil.test', key: hostile.evil.key });
          const topic = otherRoom.setState('m.room.topic', { topic: 'x' }).event.pdu;
          return {
            ...hostile.room.stateAndAuthChain(),
            auth_chain: [...hostile.room.stateAndAuthChain().auth_chain, topic],
          };
        },
      ],
      [
        'with a state that does not allow the join',
        () => {
          const closed = hostile.room.setState('m.room.join_rules', { join_rule: 'invite' });
          assert.ok(closed);
          return hostile.room.stateAndAuthChain();
        },
      ],
      ['without state and auth chain', () => ({ hello: 'world' })],
      ['that is a JSON array', () => [200, [] as unknown as JsonObject]],
      ['whose lists are not arrays', () => ({ state: {}, auth_chain: 'x' })],
      [
        'that refuses with an unexpected errcode',
        () => [401, { errcode: 'M_UNKNOWN_TOKEN', error: 'log out!' }],
      ],
    ];
    for (const [what, answer] of answers) {
      it(`fails the join for a send_join response ${what}`, async () => {
        hostile.evil.on(sendJoin, answer);
        await assertJoinFails();
        assert.ok(wasSent());
      });
    }

    it('fails the join with the status and errcode of a remote server that refuses the join', async () => {
      for (const [status, errcode] of [
        [400, 'M_INVALID_PARAM'],
        [400, 'M_BAD_JSON'],
        [403, 'M_FORBIDDEN'],
        [404, 'M_NOT_FOUND'],
      ] as const) {
        hostile.evil.on(sendJoin, () => [status, { errcode, error: 'no' }]);
        await assertJoinFails(status, errcode);
      }
    });

    it('fails the join when make_join names another room version than the room has', async () => {
      hostile.evil.on(makeJoin, () => ({
        ...hostile.room.membershipTemplate(hostile.anna.id, 'join'),
        room_version: '10',
      }));
      await assertJoinFails();
    });

    it('fails the join for make_join responses that are endless, of type text/html, redirected or cut off', async () => {
      hostile.evil.on(makeJoin, (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const flood = () => {
          if (!response.destroyed) response.write(' '.repeat(256 * 1024), () => setImmediate(flood));
        };
        flood();
        return undefined;
      });
      await assertJoinFails();
      hostile.evil.on(makeJoin, (_request, response) => {
        const body = JSON.stringify(hostile.room.membershipTemplate(hostile.anna.id, 'join'));
        response.writeHead(200, { 'content-type': 'text/html' }).end(body);
        return undefined;
      });
      await assertJoinFails();
      hostile.evil.on(makeJoin, (_request, response) => {
        response.writeHead(302, { location: 'https://a.test/_matrix/client/versions' }).end();
        return undefined;
      });
      await assertJoinFails();
      hostile.evil.on(makeJoin, (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"event":');
        return undefined;
      });
      await assertJoinFails();
      assert.equal(wasSent(), false);
    });

    it('falls back to send_join v1 for a server without send_join v2', async () => {
      hostile.evil.on(sendJoin, () => [404, { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized' }]);
      hostile.evil.on('PUT /_matrix/federation/v1/send_join/', (_request, response) => {
        const body = JSON.stringify([200, { ...hostile.room.stateAndAuthChain(), origin: 'evil.test' }]);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
        return undefined;
      });
      const { status, raw } = await join();
      assert.equal(status, 200, raw);
    });
  });
});
