import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sha256Base64 } from '../../src/protocol/crypto/index.ts';
import { type JsonObject, type JsonValue, redactPdu } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

/** Returns JSON with sorted keys, also of values that canonical JSON does not allow. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, one]) => `${JSON.stringify(key)}:${sortedJson(one)}`).join(',')}}`;
}

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a transaction with malformed events', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    let visitor: ScriptedMember;
    before(async () => {
      ({ several, peer: evil, anna } = await SeveralServers.withScriptedServer(kind, 'evil.test'));
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      visitor = await ScriptedMember.join(evil, 'a.test', roomId, mallory);
    });
    after(() => several.stop());

    const timeline = async () => {
      const query = { dir: 'b', limit: 100 };
      const { chunk } = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
      return chunk as ClientEventJson[];
    };
    /** Returns an event with changed fields and with a correct hash and signature. */
    function signed(change: Record<string, unknown>): JsonObject {
      const { signatures: _signatures, hashes: _hashes, ...pdu } = visitor.message('odd').event.pdu;
      const oddEvent = { ...pdu, ...change } as JsonObject;
      const hashed = { ...oddEvent, hashes: { sha256: sha256Base64(sortedJson(oddEvent)) } };
      let redacted: JsonObject = hashed;
      try {
        redacted = redactPdu(hashed as never, visitor.version);
      } catch {
        // For some malformed fields, redaction fails, and the whole event is signed.
      }
      return {
        ...hashed,
        signatures: { 'evil.test': { [evil.key.keyId]: evil.key.sign(sortedJson(redacted)) } },
      };
    }
    let count = 0;
    /**
     * Sends a transaction with malformed events between two valid ones, which must arrive.
     * @param asParsed the same events as the receiver's JSON parser reads them, for the request's signature
     */
    async function sendBetweenValid(items: readonly string[], asParsed = items): Promise<void> {
      const first = visitor.message(`valid ${count++}`);
      visitor.advanceTo(first);
      const last = visitor.message(`valid ${count++}`);
      visitor.advanceTo(last);
      const textOf = (malformed: readonly string[]) => {
        const pdus = [sortedJson(first.event.pdu), ...malformed, sortedJson(last.event.pdu)];
        return `{"origin":"evil.test","origin_server_ts":1,"pdus":[${pdus.join(',')}]}`;
      };
      const path = `/_matrix/federation/v1/send/among${count}`;
      const { status, body } = await evil.request('a.test', 'PUT', path, textOf(items), textOf(asParsed));
      assert.equal(status, 200, JSON.stringify(body));
      for (const { event } of [first, last]) {
        const outcome = (body['pdus'] as Record<string, JsonValue>)[event.eventId];
        assert.deepEqual(outcome, {});
        const hasArrived = async () => (await timeline()).some((one) => one.event_id === event.eventId);
        await eventually(`${items[0]?.slice(0, 80)}: ${event.eventId}`, hasArrived);
      }
    }
    const isOddVisible = async () => (await timeline()).some(({ content }) => content['body'] === 'odd');

    it('accepts valid events beside malformed ones in a transaction', async () => {
      // A valid event that `signed` makes arrives: those below are dropped only because they are malformed.
      await sendBetweenValid([sortedJson(signed({ content: { body: 'control' } }))]);
      const hasArrived = async () => (await timeline()).some(({ content }) => content['body'] === 'control');
      await eventually('the valid event', hasArrived);
      await sendBetweenValid([
        'null',
        '5',
        '"x"',
        '[]',
        '{}',
        'true',
        '{"room_id":{}}',
        '{"room_id":"!x:y"}',
      ]);
      const without = (name: string) => {
        const { [name]: _omitted, ...rest } = signed({});
        return rest;
      };
      const names = Object.keys(visitor.message('odd').event.pdu).filter((name) => name !== 'room_id');
      await sendBetweenValid(
        names.filter((name) => name !== 'hashes').map((name) => sortedJson(without(name))),
      );
      const wrongValues: unknown[] = [null, true, 5, -1, 1.5, 'x', '', '\0', [], [5], {}, { a: 1 }];
      for (const name of [
        'type',
        'sender',
        'content',
        'prev_events',
        'auth_events',
        'signatures',
        'hashes',
      ]) {
        await sendBetweenValid(
          wrongValues
            .filter((value) => name !== 'content' || !isObject(value))
            .filter((value) => name !== 'type' || typeof value !== 'string')
            .map((value) => sortedJson({ ...signed({}), ...signed({ [name]: value }), [name]: value })),
        );
      }
      assert.equal(await isOddVisible(), false);
    });

    it('rejects events with numbers that are not integers in the safe range', async () => {
      for (const name of ['depth', 'origin_server_ts']) {
        const values = [
          '-1',
          '1.5',
          '"5"',
          '9007199254740992',
          '1e400',
          '-1e400',
          '1e2',
          'null',
          '[]',
          '-0.0',
        ];
        await sendBetweenValid(
          values.map((value) => sortedJson(signed({ [name]: 77_777 })).replace('77777', value)),
        );
      }
      // Room versions from 6 on forbid such numbers in the content, too.
      const values = ['1.5', '9007199254740993', '1e400', '1E3', '-9007199254740993'];
      await sendBetweenValid(
        values.map((value) =>
          sortedJson(signed({ content: { body: 'odd', n: 77_777 } })).replace('77777', value),
        ),
      );
      assert.equal(await isOddVisible(), false);
    });

    it('rejects events that are too long, have too many references, a state_key that is no string, or too deep nesting', async () => {
      const ids = (n: number) => Array.from({ length: n }, (_, i) => `$${String(i).padStart(43, 'x')}`);
      await sendBetweenValid(
        [
          { type: 'x'.repeat(256) },
          { state_key: 'x'.repeat(256) },
          { sender: `@${'x'.repeat(250)}:evil.test` },
          { content: { body: 'x'.repeat(70_000) } },
          { prev_events: ids(21) },
          { auth_events: ids(11) },
          { auth_events: ids(1_000) },
          { room_id: roomId, state_key: 5 },
          { room_id: roomId, state_key: null },
        ].map((change) => sortedJson(signed(change))),
      );
      const nested = (levels: number) =>
        sortedJson(signed({ content: { body: 'odd', deep: 77_777 } })).replace(
          '77777',
          `${'['.repeat(levels)}${']'.repeat(levels)}`,
        );
      await sendBetweenValid([nested(1_050), nested(10_000)]);
      assert.equal(await isOddVisible(), false);
    });

    it('uses the last value of a duplicate JSON key', async () => {
      const valid = sortedJson(visitor.message('signed with duplicate keys').event.pdu);
      await sendBetweenValid([valid.replace('"content":{', '"content":{"body":"odd"},"content":{')], [valid]);
      const hasArrived = async () =>
        (await timeline()).some(({ content }) => content['body'] === 'signed with duplicate keys');
      await eventually('the event with duplicate keys', hasArrived);
      const json = sortedJson(visitor.message('signed without the last key').event.pdu);
      const withDuplicateKey = json.replace(
        /("content":\{[^}]*\})/,
        '$1,"content":{"body":"odd","msgtype":"m.text"}',
      );
      const asParsed = json.replace(/("content":\{[^}]*\})/, '"content":{"body":"odd","msgtype":"m.text"}');
      await sendBetweenValid([withDuplicateKey], [asParsed]);
      assert.equal(await isOddVisible(), false);
    });

    it('answers 400 to a transaction that contains invalid JSON or lone surrogates', async () => {
      const oddEvent = sortedJson(signed({ content: { body: 'odd', x: 77_777 } }));
      const broken = [
        oddEvent.replace('77777', '"\\ud800"'),
        oddEvent.replace('77777', '"\\udc00\\ud800"'),
        oddEvent.replace('"x":77777', '"\\ud800":1'),
        '\0',
        '"\t"',
        '[1,]',
        '',
      ];
      for (const [index, pdu] of broken.entries()) {
        const path = `/_matrix/federation/v1/send/broken${index}`;
        const { status, body } = await evil.request('a.test', 'PUT', path, `{"pdus":[${pdu},{}]}`);
        assert.equal(status, 400, JSON.stringify(body));
      }
      await sendBetweenValid(['null']);
    });

    it('treats JSON keys like __proto__ and constructor in events as plain data', async () => {
      const content = JSON.parse(
        '{"body":"proto","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":5,"hasOwnProperty":1}',
      ) as JsonObject;
      const built = visitor.build({ type: 'm.room.message', content });
      await visitor.send(built.event.pdu);
      const event = await eventually('the event', async () =>
        (await timeline()).find(({ event_id: id }) => id === built.event.eventId),
      );
      assert.deepEqual(Object.keys(event.content).sort(), Object.keys(content).sort());
      assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
      await sendBetweenValid([
        sortedJson({ ...signed({}), ['__proto__']: null }),
        `{"__proto__":{"room_id":${JSON.stringify(roomId)}},"type":"m.room.message"}`,
        sortedJson(signed({ signatures: JSON.parse('{"__proto__":{"evil.test":{}}}') })),
        sortedJson(signed({ type: '__proto__', state_key: '__proto__' })),
      ]);
      await anna.sync();
      const state = await anna.call('GET', `/rooms/${enc(roomId)}/state/__proto__/__proto__`);
      assert.ok([404, 200].includes(state.status));
    });
  });
});

const isObject = (value: unknown) => value !== null && typeof value === 'object' && !Array.isArray(value);
