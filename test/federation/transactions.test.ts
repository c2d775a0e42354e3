import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { canonicalJson, isEventId, type JsonObject } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

let transactions = 0;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('PUT /_matrix/federation/v1/send/{txnId}', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let c: ScriptedServer;
    let alice: TestClient;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test']);
      several = opened.several;
      [a] = opened.servers;
      alice = await a.registerClient('alice');
      c = await several.scripted('c.test');
    });
    after(() => several.stop());

    const send = async (body: JsonObject, txnId = `t${++transactions}`) => {
      const { status, body: answer } = await c.request(
        'a.test',
        'PUT',
        `/_matrix/federation/v1/send/${txnId}`,
        {
          origin: 'c.test',
          origin_server_ts: Date.now(),
          pdus: [],
          ...body,
        },
      );
      return { status, body: answer };
    };
    const message = (id: string): JsonObject => ({
      edu_type: 'm.direct_to_device',
      content: {
        sender: '@carol:c.test',
        type: 'm.test',
        message_id: id,
        messages: { [alice.id]: { '*': { id } } },
      },
    });
    let since: string | undefined;
    /** Returns the ids of the to-device messages that Alice has received since the last call. */
    const received = async () => {
      const query = { timeout: 0, ...(since !== undefined && { since }) };
      const { to_device: toDevice, next_batch: next } = await alice.do('GET', '/sync', undefined, query);
      since = String(next);
      const { events = [] } = (toDevice ?? {}) as { events?: { content: { id: string } }[] };
      return events.map(({ content }) => content.id);
    };

    it('processes a transaction once and repeats its response, also after a restart', async () => {
      const first = await send({ edus: [message('1')] }, 'once');
      assert.deepEqual(first, { status: 200, body: { pdus: {} } });
      assert.deepEqual(await send({ edus: [message('2')] }, 'once'), first);
      const together = await Promise.all([
        send({ edus: [message('3')] }, 'together'),
        send({ edus: [message('4')] }, 'together'),
      ]);
      assert.deepEqual(together, [first, first]);
      await a.restart();
      assert.deepEqual(await send({ edus: [message('5')] }, 'once'), first);
      await send({ edus: [message('6')] }, 'another');
      const receivedIds = await received();
      assert.equal(receivedIds.length, 3);
      assert.deepEqual([receivedIds[0], receivedIds[2]], ['1', '6']);
      assert.ok(['3', '4'].includes(receivedIds[1]!));
    });

    it('distinguishes equal transaction ids of different servers', async () => {
      const d = await several.scripted('d.test');
      await send({ edus: [message('of c')] }, 'same');
      const content = { ...(message('of d')['content'] as JsonObject), sender: '@dave:d.test' };
      await d.request('a.test', 'PUT', '/_matrix/federation/v1/send/same', {
        origin: 'd.test',
        origin_server_ts: 1,
        pdus: [],
        edus: [{ edu_type: 'm.direct_to_device', content }],
      });
      assert.deepEqual(await received(), ['of c', 'of d']);
    });

    it('rejects transactions that are too large, malformed, of another origin or with a transaction id that is too long', async () => {
      const many = (count: number) => Array.from({ length: count }, () => ({}));
      for (const [status, body] of [
        [400, { pdus: many(51) }],
        [400, { edus: many(101) }],
        [400, { pdus: {} }],
        [400, { edus: 'none' }],
        [403, { origin: 'a.test' }],
        [200, { pdus: many(50), edus: many(100) }],
      ] as const) {
        const answer = await send(body as JsonObject);
        assert.equal(answer.status, status, JSON.stringify(answer.body));
      }
      assert.equal((await send({}, 'x'.repeat(300))).status, 400);
    });

    it('returns an error for each PDU that is malformed or of an unknown room', async () => {
      const room = { room_id: '!unknown:c.test', type: 'm.room.message', sender: '@carol:c.test' };
      const pdus = [{ ...room, event_id: '$one:c.test' }, {}, null, 5, { ...room, room_id: 7 }, 'event'];
      const { status, body } = await send({ pdus: pdus as JsonObject[] });
      assert.equal(status, 200);
      const outcomes = body['pdus'] as Record<string, { error?: unknown }>;
      assert.equal(typeof outcomes['$one:c.test']?.error, 'string');
      assert.ok(Object.values(outcomes).every(({ error }) => typeof error === 'string'));
    });

    it('reports each refused event under the event id that the sender knows', async () => {
      const roomId = await alice.createRoom({ preset: 'public_chat', room_version: '11' });
      const visitor = await ScriptedMember.join(c, 'a.test', roomId, '@carol:c.test');
      const invalidChanges: JsonObject[] = [
        { depth: 'deep' },
        { content: { body: 'x'.repeat(70_000) } },
        { signatures: {} },
        { prev_events: Array<string>(21).fill(`$${'A'.repeat(43)}`) },
      ];
      for (const change of invalidChanges) {
        const { event } = visitor.message('wrong');
        const outcomes = Object.entries(await visitor.send({ ...event.pdu, ...change }));
        assert.equal(outcomes.length, 1, JSON.stringify(Object.keys(change)));
        const [[eventId, outcome] = []] = outcomes;
        assert.ok(isEventId(eventId));
        // The event id does not depend on fields that a redaction removes.
        if ('content' in change || 'signatures' in change) assert.equal(eventId, event.eventId);
        assert.deepEqual(Object.keys(outcome ?? {}), ['error']);
      }
    });

    it('processes valid EDUs beside malformed ones', async () => {
      const malformedEdus: unknown[] = [
        null,
        'edu',
        [],
        {},
        { edu_type: 5, content: {} },
        { edu_type: 'm.typing' },
        { edu_type: 'm.unheard_of', content: {} },
      ];
      for (const type of [
        'm.typing',
        'm.receipt',
        'm.presence',
        'm.device_list_update',
        'm.direct_to_device',
      ]) {
        for (const content of [{}, [], { push: [null, {}] }, { '!x:c.test': { 'm.read': { '@a:b': 5 } } }]) {
          malformedEdus.push({ edu_type: type, content });
        }
      }
      const { status } = await send({ edus: [...malformedEdus, message('after all')] as JsonObject[] });
      assert.equal(status, 200);
      assert.deepEqual(await received(), ['after all']);
    });

    it('processes EDUs beside a PDU that is nested too deeply', async () => {
      // `canonicalJson` refuses such depths, so the text is written by hand.
      const text = (levels: number, id: string) => {
        const edus = canonicalJson([message(id)]);
        const pdus = `[{"a":${'['.repeat(levels)}${']'.repeat(levels)}},{}]`;
        return `{"edus":${edus},"origin":"c.test","origin_server_ts":1,"pdus":${pdus}}`;
      };
      for (const levels of [900, 1_100, 20_000]) {
        const path = `/_matrix/federation/v1/send/deep${levels}`;
        const { status } = await c.request('a.test', 'PUT', path, text(levels, `beside ${levels}`));
        assert.equal(status, 200, String(levels));
      }
      assert.deepEqual(await received(), ['beside 900', 'beside 1100', 'beside 20000']);
    });
  });
});
