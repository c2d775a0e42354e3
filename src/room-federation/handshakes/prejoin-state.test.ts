import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { SignedRoom } from '../../../test/support/rooms/signed-room.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import type { JsonObject, JsonValue } from '../../protocol/index.ts';
import { MissingKeys } from '../checking/missing-keys.ts';
import { Verifier } from '../checking/verifier.ts';
import { readPrejoinState } from './prejoin-state.ts';

const clock = manualClock();
const theirs = { serverName: 'b.test', key: newSigningKey('b') };
const verifier = new Verifier({
  clock,
  missing: new MissingKeys(clock, plainCaches(clock)),
  keys: {
    findAll: async () => (serverName, keyId) =>
      serverName === 'b.test' && keyId === theirs.key.keyId
        ? { key: theirs.key.publicKey, validUntilTs: clock.now() + 1e9 }
        : undefined,
  },
});
const roomOf = (version: string) => new SignedRoom(version, theirs, clock.now());
const pdusOf = (room: SignedRoom) => [...room.state.values()].map(({ event }) => event.pdu);
const stripped = { type: 'm.room.name', state_key: '', sender: '@x:b.test', content: { name: 'Attic' } };

describe('readPrejoinState reads the state that describes a room', () => {
  for (const version of ['1', '6', '11', '12']) {
    it(`reads PDUs in room version ${version}`, async () => {
      const room = roomOf(version);
      const { state, problem } = await readPrejoinState(verifier, room, pdusOf(room));
      assert.equal(problem, undefined);
      assert.equal(state.length, room.state.size);
      for (const entry of state) {
        if (version === '12' && entry.type === 'm.room.create') assert.deepEqual(entry, pdusOf(room)[0]);
        else assert.deepEqual(Object.keys(entry).sort(), ['content', 'sender', 'state_key', 'type']);
      }
    });
  }

  it('reads stripped state in room versions before 12 only, and reports it as a problem in all room versions', async () => {
    const { state, problem } = await readPrejoinState(verifier, roomOf('11'), [
      { ...stripped, event_id: '$x', unsigned: {}, signatures: {} },
    ]);
    assert.deepEqual(state, [stripped]);
    assert.match(problem ?? '', /not an event of the room/);
    const newer = await readPrejoinState(verifier, roomOf('12'), [stripped]);
    assert.deepEqual(newer.state, []);
    assert.match(newer.problem ?? '', /not an event of the room/);
  });

  it('leaves out events of other rooms and events without signatures in room version 12', async () => {
    const room = roomOf('12');
    const otherRoom = new SignedRoom('12', theirs, clock.now() + 1_000);
    const result = await readPrejoinState(verifier, room, pdusOf(otherRoom));
    assert.deepEqual(result.state, []);
    const unsigned = pdusOf(room).map((pdu) => ({ ...pdu, signatures: {} }));
    assert.deepEqual((await readPrejoinState(verifier, room, unsigned)).state, []);
  });

  it('reports a create event with another room version', async () => {
    for (const [version, stated] of [
      ['11', '10'],
      ['1', '2'],
      ['12', '11'],
    ] as const) {
      const room = roomOf(version);
      if (version === '12') room.roomId = '';
      const create = room.setState('m.room.create', { room_version: stated });
      const pdus = version === '12' ? [create.event.pdu] : pdusOf(room);
      const described = { roomId: create.event.roomId, version: room.version };
      const { problem } = await readPrejoinState(verifier, described, pdus);
      assert.match(problem ?? '', /another version/);
    }
  });

  it('limits the number of entries and bytes, keeps one entry per key, and leaves out entries whose sender is not a user id', async () => {
    const many = Array.from({ length: 500 }, (_, index) => ({ ...stripped, state_key: String(index) }));
    assert.equal((await readPrejoinState(verifier, roomOf('11'), many)).state.length, 100);
    const long = { ...stripped, content: { name: 'x'.repeat(50_000) } };
    const longEntries = [1, 2, 3, 4].map((index) => ({ ...long, state_key: String(index) }));
    const limited = (await readPrejoinState(verifier, roomOf('11'), longEntries)).state;
    assert.ok(JSON.stringify(limited).length <= 128 * 1024);
    const twice = await readPrejoinState(verifier, roomOf('11'), [stripped, { ...stripped, content: {} }]);
    assert.deepEqual(twice.state, [{ ...stripped, content: {} }]);
    const invalidSender = await readPrejoinState(verifier, roomOf('11'), [
      { ...stripped, sender: 'not a user id' },
    ]);
    assert.deepEqual(invalidSender.state, []);
  });

  it('reads arbitrary JSON without errors', async () => {
    const room = roomOf('11');
    const pdu = pdusOf(room)[0]!;
    const entry = fc.oneof(
      fc.jsonValue().map((value) => value as JsonValue),
      fc
        .dictionary(
          fc.constantFrom('type', 'state_key', 'sender', 'content', 'room_id', '__proto__'),
          fc.jsonValue(),
        )
        .map((changes) => ({ ...pdu, ...changes }) as JsonObject),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 8 }), async (entries) => {
        const { state } = await readPrejoinState(verifier, room, entries);
        for (const { type, state_key: key, sender, content } of state) {
          assert.deepEqual([typeof type, typeof key, typeof content], ['string', 'string', 'object']);
          assert.match(sender, /^@[^\0]*:./);
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
