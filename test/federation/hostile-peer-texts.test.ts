import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sha256Base64 } from '../../src/protocol/crypto/index.ts';
import { type JsonObject, type JsonValue, redactPdu } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers } from '../support/other-servers/several-servers.ts';
import { type ClientEventJson, enc, type TestClient } from '../support/users/test-client.ts';

const mallory = '@mallory:evil.test';

/** JSON with sorted keys, whatever is in it: where a server of the network would refuse to write it, this does not. */
function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, one]) => `${JSON.stringify(key)}:${stable(one)}`).join(',')}}`;
}

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('events that are none, among others', () => {
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
    /** An event with anything in it, with the right hash and the right signature. */
    function signed(change: Record<string, unknown>): JsonObject {
      const { signatures: _signatures, hashes: _hashes, ...pdu } = visitor.message('odd').event.pdu;
      const odd = { ...pdu, ...change } as JsonObject;
      const hashed = { ...odd, hashes: { sha256: sha256Base64(stable(odd)) } };
      let redacted: JsonObject = hashed;
      try {
        redacted = redactPdu(hashed as never, visitor.version);
      } catch {
        // It can not even be redacted.
      }
      return {
        ...hashed,
        signatures: { 'evil.test': { [evil.key.keyId]: evil.key.sign(stable(redacted)) } },
      };
    }
    let count = 0;
    /** Sends the text of a transaction in which events that are none stand between two that are right. */
    async function among(items: readonly string[], asRead = items): Promise<void> {
      const first = visitor.message(`right ${count++}`);
      visitor.advanceTo(first);
      const last = visitor.message(`right ${count++}`);
      visitor.advanceTo(last);
      const textOf = (some: readonly string[]) => {
        const pdus = [stable(first.event.pdu), ...some, stable(last.event.pdu)];
        return `{"origin":"evil.test","origin_server_ts":1,"pdus":[${pdus.join(',')}]}`;
      };
      const path = `/_matrix/federation/v1/send/among${count}`;
      const { status, body } = await evil.ask('a.test', 'PUT', path, textOf(items), textOf(asRead));
      assert.equal(status, 200, JSON.stringify(body));
      for (const { event } of [first, last]) {
        const outcome = (body['pdus'] as Record<string, JsonValue>)[event.eventId];
        assert.deepEqual(outcome, {});
        const isThere = async () => (await timeline()).some((one) => one.event_id === event.eventId);
        await eventually(`${items[0]?.slice(0, 80)}: ${event.eventId}`, isThere);
      }
    }
    const isShown = async () => (await timeline()).some(({ content }) => content['body'] === 'odd');

    it('stop none of the others', async () => {
      // Made the same way, but right.
      await among([stable(signed({ content: { body: 'control' } }))]);
      const isThere = async () => (await timeline()).some(({ content }) => content['body'] === 'control');
      await eventually('what is right', isThere);
      await among(['null', '5', '"x"', '[]', '{}', 'true', '{"room_id":{}}', '{"room_id":"!x:y"}']);
      const without = (name: string) => {
        const { [name]: _left, ...rest } = signed({});
        return rest;
      };
      const names = Object.keys(visitor.message('odd').event.pdu).filter((name) => name !== 'room_id');
      await among(names.filter((name) => name !== 'hashes').map((name) => stable(without(name))));
      const wrong: unknown[] = [null, true, 5, -1, 1.5, 'x', '', '\0', [], [5], {}, { a: 1 }];
      for (const name of [
        'type',
        'sender',
        'content',
        'prev_events',
        'auth_events',
        'signatures',
        'hashes',
      ]) {
        await among(
          wrong
            .filter((value) => name !== 'content' || !isObject(value))
            .filter((value) => name !== 'type' || typeof value !== 'string')
            .map((value) => stable({ ...signed({}), ...signed({ [name]: value }), [name]: value })),
        );
      }
      assert.equal(await isShown(), false);
    });

    it('have numbers that no integer field holds', async () => {
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
        await among(values.map((value) => stable(signed({ [name]: 77_777 })).replace('77777', value)));
      }
      // In content as well, since version 6.
      const values = ['1.5', '9007199254740993', '1e400', '1E3', '-9007199254740993'];
      await among(
        values.map((value) =>
          stable(signed({ content: { body: 'odd', n: 77_777 } })).replace('77777', value),
        ),
      );
      assert.equal(await isShown(), false);
    });

    it('are too long, too many, too deep', async () => {
      const ids = (n: number) => Array.from({ length: n }, (_, i) => `$${String(i).padStart(43, 'x')}`);
      await among(
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
        ].map((change) => stable(signed(change))),
      );
      const nested = (levels: number) =>
        stable(signed({ content: { body: 'odd', deep: 77_777 } })).replace(
          '77777',
          `${'['.repeat(levels)}${']'.repeat(levels)}`,
        );
      await among([nested(1_050), nested(10_000)]);
      assert.equal(await isShown(), false);
    });

    it('have keys that come twice, of which the last one counts', async () => {
      const right = stable(visitor.message('what was signed').event.pdu);
      await among([right.replace('"content":{', '"content":{"body":"odd"},"content":{')], [right]);
      const isThere = async () =>
        (await timeline()).some(({ content }) => content['body'] === 'what was signed');
      await eventually('what was signed', isThere);
      const other = stable(visitor.message('what was signed, too').event.pdu);
      const twice = other.replace(/("content":\{[^}]*\})/, '$1,"content":{"body":"odd","msgtype":"m.text"}');
      const asRead = other.replace(/("content":\{[^}]*\})/, '"content":{"body":"odd","msgtype":"m.text"}');
      await among([twice], [asRead]);
      assert.equal(await isShown(), false);
    });

    it('have text that is none: who sends that is not heard', async () => {
      const odd = stable(signed({ content: { body: 'odd', x: 77_777 } }));
      const broken = [
        odd.replace('77777', '"\\ud800"'),
        odd.replace('77777', '"\\udc00\\ud800"'),
        odd.replace('"x":77777', '"\\ud800":1'),
        '\0',
        '"\t"',
        '[1,]',
        '',
      ];
      for (const [index, one] of broken.entries()) {
        const path = `/_matrix/federation/v1/send/broken${index}`;
        const { status, body } = await evil.ask('a.test', 'PUT', path, `{"pdus":[${one},{}]}`);
        assert.equal(status, 400, JSON.stringify(body));
      }
      await among(['null']);
    });

    it('have names that mean something to JavaScript', async () => {
      const content = JSON.parse(
        '{"body":"proto","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":5,"hasOwnProperty":1}',
      ) as JsonObject;
      const built = visitor.build({ type: 'm.room.message', content });
      await visitor.send(built.event.pdu);
      const found = await eventually('it', async () =>
        (await timeline()).find(({ event_id: id }) => id === built.event.eventId),
      );
      assert.deepEqual(Object.keys(found.content).sort(), Object.keys(content).sort());
      assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
      await among([
        stable({ ...signed({}), __proto__: null }),
        `{"__proto__":{"room_id":${JSON.stringify(roomId)}},"type":"m.room.message"}`,
        stable(signed({ signatures: JSON.parse('{"__proto__":{"evil.test":{}}}') })),
        stable(signed({ type: '__proto__', state_key: '__proto__' })),
      ]);
      await anna.sync();
      const state = await anna.call('GET', `/rooms/${enc(roomId)}/state/__proto__/__proto__`);
      assert.ok([404, 200].includes(state.status));
    });
  });
});

const isObject = (value: unknown) => value !== null && typeof value === 'object' && !Array.isArray(value);
