import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { ReferenceRoom } from '../../test/support/rooms/reference-room.ts';
import { alice, bob, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import {
  type JsonObject,
  type JsonValue,
  type Pdu,
  parseJsonObject,
  roomEventOf,
  roomVersions,
} from '../protocol/index.ts';
import { type EventsByNid, RoomFactCodec } from './room-fact-codec.ts';
import type { RoomFact, StoredEvent } from './stored-event.ts';

/** Encodes a fact into text, and decodes it again. */
const encodeAndDecode = (codec: RoomFactCodec, fact: RoomFact) =>
  codec.decode(JSON.parse(JSON.stringify(codec.encode(fact))) as JsonValue);

const record = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { noNullPrototype: true });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const nid = fc.integer({ min: 1, max: 2 ** 50 });

/** Contents as JSON. Some have a number that is only kept as written if it is not parsed into a JavaScript number. */
const content = fc
  .tuple(
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc.constantFrom('', '"number":1.0', '"number":12345678901234567890'),
  )
  .map(([fields, numberField]) => {
    const text = JSON.stringify(fields);
    return numberField === ''
      ? text
      : text.replace('{', Object.keys(fields).length > 0 ? `{${numberField},` : `{${numberField}`);
  });

/** Events of all room versions. Those of versions without strict canonical JSON keep numbers as they are written. */
const storedEvent: fc.Arbitrary<StoredEvent> = record({
  version: fc.constantFrom(...roomVersions.values()),
  content,
  stateKey: optional(fc.string()),
  type: fc.oneof(fc.string(), fc.constantFrom('m.room.create', 'm.room.redaction')),
  numbers: record({
    nid,
    roomNid: nid,
    stream: optional(fc.integer({ min: -(2 ** 50), max: 2 ** 50 })),
    stateGroup: optional(nid),
    stateBefore: optional(nid),
    replaces: optional(nid),
    redactedBy: optional(nid),
  }),
  flags: record({
    rejected: fc.boolean(),
    softFailed: fc.boolean(),
    distribute: fc.boolean(),
    acceptedElsewhere: fc.boolean(),
    resolves: fc.boolean(),
    followsGap: fc.boolean(),
    withheld: fc.boolean(),
    outOfBand: fc.boolean(),
  }),
}).map(({ version, content, stateKey, type, numbers, flags }) => {
  const numbersForm = version.strictCanonicalJson ? 'values' : 'as written';
  const pdu = {
    type,
    room_id: '!room:test',
    sender: alice,
    content: parseJsonObject(content, { numbers: numbersForm }),
    depth: 7,
    origin_server_ts: 1_700_000_000_000,
    auth_events: version.eventReferences === 'ids' ? ['$a'] : [['$a', { sha256: 'x' }]],
    prev_events: [],
    hashes: { sha256: 'x' },
    signatures: {},
    ...(stateKey !== undefined && { state_key: stateKey }),
  } as JsonObject as Pdu;
  return { ...numbers, ...flags, event: roomEventOf(pdu, version, '$event') };
});

const extremity = record({ nid, eventId: fc.string(), depth: nid, stateGroup: optional(nid) });

const plainFact = record({
  end: optional(record({ extremities: fc.array(extremity, { maxLength: 5 }), group: optional(nid) })),
  redacts: optional(nid),
  transaction: optional(record({ scope: nid, txnId: fc.string() })),
  roomId: fc.string(),
  position: nid,
  onTimeline: fc.boolean(),
  stored: storedEvent,
  stateChanges: fc.uniqueArray(
    record({
      type: fc.string(),
      stateKey: fc.string(),
      event: optional(storedEvent),
      previousNid: optional(nid),
      keyNid: optional(nid),
    }),
    { selector: ({ event }) => event?.nid, maxLength: 70 },
  ),
  membershipChanges: fc.array(
    record({
      userId: fc.string(),
      from: optional(fc.constantFrom('join' as const, 'invite' as const, 'leave' as const)),
      to: fc.constantFrom('join' as const, 'ban' as const, 'knock' as const),
      eventNid: nid,
    }),
  ),
});

const fact: fc.Arbitrary<RoomFact> = fc
  .tuple(plainFact, fc.boolean())
  .map(([plain, completesState]) => (completesState ? { ...plain, completesState } : plain));

describe('encoding and decoding facts of rooms (RoomFactCodec)', () => {
  it('decodes facts that equal the encoded facts, for events of every room version', async () => {
    const onDisk = new Map<number, StoredEvent>();
    const events: EventsByNid = {
      getMany: async (nids) => new Map([...nids].flatMap((eventNid) => entryOf(onDisk, eventNid))),
    };
    await fc.assert(
      fc.asyncProperty(fact, async (original) => {
        fc.pre(original.stateChanges.every(({ event }) => event?.nid !== original.stored.nid));
        onDisk.clear();
        for (const { event } of original.stateChanges) if (event) onDisk.set(event.nid, event);
        assert.deepEqual(await encodeAndDecode(new RoomFactCodec(events), original), original);
      }),
    );
  });

  it('rejects a fact if the database lacks an event that is encoded as its nid only', async () => {
    const emptyStore: EventsByNid = { getMany: async () => new Map() };
    const [original] = fc.sample(fact, 1) as [RoomFact];
    const [stored] = fc.sample(storedEvent, 1) as [StoredEvent];
    const changeOfEvent = (eventNid: number) => ({
      type: 'm.room.member',
      stateKey: `${eventNid}`,
      event: { ...stored, nid: eventNid },
      previousNid: undefined,
      keyNid: undefined,
    });
    // Of so many events, some are encoded as their nids only.
    const stateChanges = Array.from({ length: 60 }, (_, index) => changeOfEvent(index + 1));
    const codec = new RoomFactCodec(emptyStore);
    await assert.rejects(
      async () => encodeAndDecode(codec, { ...original, stateChanges }),
      /is not in the database/,
    );
  });
});

function entryOf<K, V>(map: ReadonlyMap<K, V>, key: K): [K, V][] {
  const value = map.get(key);
  return value === undefined ? [] : [[key, value]];
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('RoomFactCodec with the facts of a running server', () => {
    it('decodes facts that were encoded before a restart into equal facts', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const facts: RoomFact[] = [];
      const sent: string[] = [];
      fixture.engine.stream.subscribe((fact) => {
        facts.push(fact);
        sent.push(JSON.stringify(fixture.engine.stream.codec.encode(fact)));
      });
      const roomId = await fixture.room(alice, bob);
      const messageId = await fixture.say(alice, roomId, 'hello');
      await fixture.redact(alice, roomId, messageId);
      await fixture.leave(bob, roomId);
      const remote = new ReferenceRoom();
      for (let index = 0; index < 80; index++) remote.member(`@user${index}:s.example`, 'join');
      await fixture.engine.placement.enter(remote.room, remote.join(alice));
      const { stream } = (await fixture.restart(open)).engine;
      const decoded: RoomFact[] = [];
      for (const text of sent) decoded.push(await stream.codec.decode(JSON.parse(text) as JsonValue));
      assert.ok(Math.max(...facts.map(({ stateChanges }) => stateChanges.length)) > 80);
      assert.deepEqual(withoutRedactions(decoded), withoutRedactions(facts));
    });
  });
});

/** Returns the facts without `redactedBy`, which changes on an event in memory as soon as it is redacted. */
const withoutRedactions = (facts: readonly RoomFact[]) =>
  facts.map((fact) => ({ ...fact, stored: { ...fact.stored, redactedBy: undefined } }));
