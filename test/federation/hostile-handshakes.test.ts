import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type { ScriptedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import { lies } from './lying-templates.ts';

const template = 'GET /_matrix/federation/v1/make_join/';
const sending = 'PUT /_matrix/federation/v2/send_join/';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('a server that lies to one that wants to join', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    before(async () => {
      ({
        several,
        peer: evil,
        anna,
      } = await SeveralServers.withScriptedServer(kind, 'evil.test', withoutRetries));
    });
    after(() => several.stop());
    beforeEach(() => {
      room = new SignedRoom('11', { serverName: 'evil.test', key: evil.key });
      evil.asked.splice(0);
      evil.on(template, () => room.membershipTemplate(anna.id, 'join'));
      evil.on(sending, () => ({ ...room.stateAndAuthChain() }));
    });

    const join = () => anna.call('POST', `/join/${enc(room.roomId)}`, {}, { via: 'evil.test' });
    const joins = () => evil.asked.filter(({ path }) => path.includes('/send_join/'));
    const wasSent = () => joins().length > 0;
    async function fails(status = 502, errcode = 'M_UNKNOWN') {
      const answer = await join();
      assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], answer.raw);
      const { rooms } = await anna.sync();
      assert.equal(rooms?.join?.[room.roomId], undefined);
      const { joined_rooms: joined } = await anna.do('GET', '/joined_rooms');
      assert.ok(!(joined as string[]).includes(room.roomId));
    }

    it('is believed when it does not', async () => {
      const { status, raw } = await join();
      assert.equal(status, 200, raw);
      const sent = joins()[0]!.body;
      assert.deepEqual(
        [sent['type'], sent['sender'], sent['state_key'], sent['room_id']],
        ['m.room.member', anna.id, anna.id, room.roomId],
      );
      assert.equal((sent['content'] as JsonObject)['membership'], 'join');
    });

    const templates: [what: string, change: (event: JsonObject) => JsonObject, more?: JsonObject][] = [
      ...lies,
      ['with another membership', (event) => ({ ...event, content: { membership: 'ban' } })],
      ['without previous events', ({ prev_events: _prev, ...event }) => event],
      ['of an unknown version', (event) => event, { room_version: '99' }],
    ];
    for (const [what, change, more] of templates) {
      it(`gets nothing signed by a template ${what}`, async () => {
        evil.on(template, () => {
          const right = room.membershipTemplate(anna.id, 'join');
          return { ...right, event: change(right['event'] as JsonObject), ...more };
        });
        await fails();
        assert.equal(wasSent(), false);
      });
    }

    it('does not get further content of a template signed', async () => {
      evil.on(template, () => room.membershipTemplate(anna.id, 'join', { displayname: 'Fool', evil: true }));
      assert.equal((await join()).status, 200);
      const { content } = joins()[0]!.body;
      assert.deepEqual(content, { membership: 'join', displayname: 'anna' });
    });

    const answers: [what: string, answer: () => ScriptedAnswer][] = [
      ['without a create event', () => ({ ...room.stateAndAuthChain(), state: [] })],
      [
        'with a state that another key has signed',
        () =>
          new SignedRoom('11', {
            serverName: 'evil.test',
            key: newSigningKey('scripted'),
          }).stateAndAuthChain(),
      ],
      [
        'with the state of another room',
        () => new SignedRoom('11', { serverName: 'evil.test', key: evil.key }).stateAndAuthChain(),
      ],
      [
        'with an event of another room among the others',
        () => {
          const other = new SignedRoom('11', { serverName: 'evil.test', key: evil.key });
          const topic = other.setState('m.room.topic', { topic: 'x' }).event.pdu;
          return { ...room.stateAndAuthChain(), auth_chain: [...room.stateAndAuthChain().auth_chain, topic] };
        },
      ],
      [
        'with a state that does not let the user in',
        () => {
          const closed = room.setState('m.room.join_rules', { join_rule: 'invite' });
          assert.ok(closed);
          return room.stateAndAuthChain();
        },
      ],
      ['that is no room', () => ({ hello: 'world' })],
      ['that is a list', () => [200, [] as unknown as JsonObject]],
      ['whose lists are none', () => ({ state: {}, auth_chain: 'x' })],
      ['that refuses with a strange code', () => [401, { errcode: 'M_UNKNOWN_TOKEN', error: 'log out!' }]],
      ['that blames the event', () => [400, { errcode: 'M_INVALID_PARAM', error: 'no' }]],
    ];
    for (const [what, answer] of answers) {
      it(`does not get anybody into its room by an answer ${what}`, async () => {
        evil.on(sending, answer);
        await fails();
        assert.ok(wasSent());
      });
    }

    it('does not get anybody into a room of another version than it says', async () => {
      evil.on(template, () => ({ ...room.membershipTemplate(anna.id, 'join'), room_version: '10' }));
      await fails();
    });

    it('can not make the answer endless, another type, or a way to somewhere else', async () => {
      evil.on(template, (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const flood = () => {
          if (!response.destroyed) response.write(' '.repeat(256 * 1024), () => setImmediate(flood));
        };
        flood();
        return undefined;
      });
      await fails();
      evil.on(template, (_request, response) => {
        const body = JSON.stringify(room.membershipTemplate(anna.id, 'join'));
        response.writeHead(200, { 'content-type': 'text/html' }).end(body);
        return undefined;
      });
      await fails();
      evil.on(template, (_request, response) => {
        response.writeHead(302, { location: 'https://a.test/_matrix/client/versions' }).end();
        return undefined;
      });
      await fails();
      evil.on(template, (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"event":');
        return undefined;
      });
      await fails();
      assert.equal(wasSent(), false);
    });

    it('may be an old one, that knows send_join only as it was', async () => {
      evil.on(sending, () => [404, { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized' }]);
      evil.on('PUT /_matrix/federation/v1/send_join/', (_request, response) => {
        const body = JSON.stringify([200, { ...room.stateAndAuthChain(), origin: 'evil.test' }]);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
        return undefined;
      });
      const { status, raw } = await join();
      assert.equal(status, 200, raw);
    });
  });
});
